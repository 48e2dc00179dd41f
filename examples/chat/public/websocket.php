<?php

declare(strict_types=1);

// The server keeps the sockets. This script runs once per event of one of them
// and then ends, like any page. The cookies of the upgrade request come with
// every event, so the session tells who it is about.

require __DIR__ . '/../lib/chat.php';

match ($_SERVER['WS_EVENT'] ?? null) {
    'connect' => on_connect(),
    'message' => on_message(),
    'disconnect' => on_disconnect(),
    default => chat_refuse(426, 'connect with a WebSocket'),
};

/** Runs before the handshake is answered: anything but 2xx refuses the socket. */
function on_connect(): void
{
    // Browsers send cookies along with the upgrade from any page on the web.
    if ($_SERVER['WS_SAME_ORIGIN'] !== '1') {
        chat_refuse(403, 'wrong origin');
    }
    chat_session();
    $name = chat_user() ?? chat_refuse(401, 'log in first');

    ephpm_ws_subscribe(LOBBY);
    ephpm_ws_subscribe(chat_user_channel($name));
    $count = ephpm_ws_count(LOBBY);

    // Held until the handshake is done, then the first thing the tab reads.
    ephpm_ws_send(chat_encode('welcome', ['name' => $name, 'count' => $count]));

    $firstTab = ephpm_ws_count(chat_user_channel($name)) === 1;
    ephpm_ws_broadcast(
        LOBBY,
        chat_encode($firstTab ? 'join' : 'count', ['name' => $name, 'count' => $count]),
        except: $_SERVER['WS_CONNECTION_ID'],
    );
}

function on_message(): void
{
    chat_session();
    $name = chat_user();
    if ($name === null) { // logged out in another tab
        ephpm_ws_close(1008, 'log in first');
        return;
    }
    $message = json_decode(file_get_contents('php://input'), true, 4);
    $text = chat_clean_text($message['text'] ?? null);
    if ($text === null) {
        $limit = MAX_TEXT;
        ephpm_ws_send(chat_encode('error', ['text' => "A message is 1 to $limit characters of text."]));
        return;
    }
    ephpm_ws_broadcast(LOBBY, chat_encode('message', ['from' => $name, 'text' => $text]));
}

/** The connection has already left its channels. */
function on_disconnect(): void
{
    chat_session();
    $name = chat_user();
    $lastTab = $name !== null && ephpm_ws_count(chat_user_channel($name)) === 0;
    ephpm_ws_broadcast(LOBBY, chat_encode($lastTab ? 'leave' : 'count', [
        'name' => $name,
        'count' => ephpm_ws_count(LOBBY),
    ]));
}
