<?php
switch ($_SERVER['WS_EVENT']) {
    case 'connect':
        ephpm_ws_subscribe('all');
        break;
    case 'message':
        ephpm_ws_send(file_get_contents('php://input'));
        break;
}
