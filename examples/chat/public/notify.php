<?php

declare(strict_types=1);

// An ordinary endpoint that another program calls to reach a user's browser:
//
//   curl -H "X-Api-Key: $CHAT_NOTIFY_KEY" -d to=alice -d text=Hello http://localhost:8080/notify.php
//
// It pushes to every tab of that user and says to how many.

require __DIR__ . '/../lib/chat.php';

$key = getenv('CHAT_NOTIFY_KEY');
if ($key === false || $key === '') {
    chat_refuse(503, 'set CHAT_NOTIFY_KEY in the environment of the server');
}
chat_require_post();
if (!hash_equals($key, $_SERVER['HTTP_X_API_KEY'] ?? '')) {
    chat_refuse(401, 'X-Api-Key is missing or wrong');
}
$to = chat_clean_name($_POST['to'] ?? null) ?? chat_refuse(400, 'to is not the name of a user');
$text = chat_clean_text($_POST['text'] ?? null) ?? chat_refuse(400, 'text is empty or too long');

$queued = ephpm_ws_broadcast(chat_user_channel($to), chat_encode('notify', ['text' => $text]));

header('Content-Type: application/json');
echo json_encode(['queued' => $queued]), "\n";
