<?php

declare(strict_types=1);

require __DIR__ . '/../lib/chat.php';

chat_session();
$user = chat_user();
header('Cache-Control: no-store');
header("Content-Security-Policy: default-src 'self'; frame-ancestors 'none'");
?>
<!doctype html>
<html lang="en">
<head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Chat</title>
    <link rel="icon" href="icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="style.css">
</head>
<?php if ($user === null): ?>
<body class="login">
    <main class="card">
        <img src="icon.svg" alt="" width="56" height="56">
        <h1>Join the lobby</h1>
        <p>Pick a name and say hello. Everybody in the lobby reads what you write.</p>
        <form method="post" action="login.php">
            <label for="name">Your name</label>
            <input id="name" name="name" required maxlength="24" autocomplete="nickname" autofocus
                <?php if (isset($_GET['error'])): ?>aria-invalid="true" aria-describedby="name-help"<?php endif ?>>
            <?php if (isset($_GET['error'])): ?>
            <p id="name-help" class="error" role="alert">Use 1 to 24 letters, digits, blanks, - and _.</p>
            <?php endif ?>
            <button>Enter</button>
        </form>
    </main>
</body>
<?php else: ?>
<body class="chat" data-user="<?= htmlspecialchars($user) ?>">
    <header>
        <h1><img src="icon.svg" alt="" width="28" height="28"> Lobby</h1>
        <span id="count" title="Open tabs in the lobby"></span>
        <span id="status" data-state="connecting">
            <span id="state" role="status">connecting</span>
            <span id="countdown" aria-hidden="true"></span>
        </span>
        <button id="retry" type="button" class="quiet" hidden>Try now</button>
        <form method="post" action="logout.php">
            <span class="me"><?= htmlspecialchars($user) ?></span>
            <button class="quiet">Log out</button>
        </form>
    </header>
    <main>
        <ol id="log" role="log" aria-live="polite" aria-label="Messages" tabindex="0"></ol>
    </main>
    <form id="compose">
        <label for="text" class="hidden">Message</label>
        <textarea id="text" rows="1" maxlength="<?= MAX_TEXT ?>" placeholder="Write a message" autofocus></textarea>
        <button id="send" disabled>Send</button>
    </form>
    <div id="toasts" role="region" aria-label="Notifications" aria-live="assertive"></div>
    <script src="chat.js" defer></script>
</body>
<?php endif ?>
</html>
