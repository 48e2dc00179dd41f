<?php

declare(strict_types=1);

// A browser does not tell a page why an upgrade was refused. The page asks here.

require __DIR__ . '/../lib/chat.php';

chat_session();
header('Cache-Control: no-store');
http_response_code(chat_user() === null ? 401 : 204);
