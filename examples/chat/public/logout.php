<?php

declare(strict_types=1);

require __DIR__ . '/../lib/chat.php';

chat_require_post();
chat_session(readOnly: false);
$name = chat_user();
$_SESSION = [];
session_destroy();

if ($name !== null) {
    // The other tabs of this user lose their socket; the page sees the code
    // and goes to the log-in form.
    foreach (ephpm_ws_members(chat_user_channel($name)) as $id) {
        ephpm_ws_connection_close($id, 4001, 'logged out');
    }
    ephpm_ws_broadcast(LOBBY, chat_encode('leave', ['name' => $name]));
}
header('Location: ./', true, 303);
