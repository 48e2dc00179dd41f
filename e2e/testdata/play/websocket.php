<?php

// Events do what a test says in PHP: a message runs itself and is answered with
// what it returned; the others run code from the query of the upgrade.
require __DIR__ . '/lib.php';

switch ($_SERVER['WS_EVENT']) {
    case 'connect':
        $id = $_SERVER['WS_CONNECTION_ID'];
        eval($_GET['connect'] ?? '');
        break;
    case 'message':
        $answer = run(file_get_contents('php://input'));
        if ($answer !== null) {
            ephpm_ws_send(text($answer));
        }
        break;
    case 'disconnect':
        trail(isset($_GET['disconnect'])
            ? run($_GET['disconnect'])
            : [$_SERVER['WS_CLOSE_CODE'], $_SERVER['WS_CLOSE_REASON'], $_SERVER['WS_CLOSE_CAUSE']]);
}
