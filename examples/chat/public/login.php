<?php

declare(strict_types=1);

require __DIR__ . '/../lib/chat.php';

chat_require_post();
chat_session(readOnly: false);
$name = chat_clean_name($_POST['name'] ?? null);
if ($name === null) {
    header('Location: ./?error=name', true, 303);
    exit;
}
// Whoever is logged in stays who they are until they log out. A real
// application checks a password here.
if (chat_user() === null) {
    session_regenerate_id(true); // a session id planted before is worth nothing
    $_SESSION['name'] = $name;
}
header('Location: ./', true, 303);
