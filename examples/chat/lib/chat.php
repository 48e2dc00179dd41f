<?php

declare(strict_types=1);

// What the pages and the socket share: who is logged in, and how a message
// looks on the wire.

const LOBBY = 'lobby';
const MAX_TEXT = 1000;

/**
 * Opens the session. Read-only, which is all that a socket event needs, does
 * not hold the session's lock, so events of several tabs run side by side.
 */
function chat_session(bool $readOnly = true): void
{
    session_name('chat');
    if ($readOnly && !isset($_COOKIE['chat'])) {
        return; // a stranger: no session to read, and none worth making
    }
    session_start([
        'cookie_httponly' => true,
        'cookie_samesite' => 'Lax',
        'cookie_secure' => isset($_SERVER['HTTPS']),
        'use_strict_mode' => true,
        'read_and_close' => $readOnly,
    ]);
}

/** The name of who is logged in, or null. The session must be open. */
function chat_user(): ?string
{
    return $_SESSION['name'] ?? null;
}

/** A name as it may be used, or null: 1 to 24 letters, digits, blanks, - and _. */
function chat_clean_name(mixed $name): ?string
{
    if (!is_string($name)) {
        return null;
    }
    $name = preg_replace('/\s+/u', ' ', trim($name));
    return is_string($name) && preg_match('/^[\p{L}\p{N}_ -]{1,24}$/u', $name) ? $name : null;
}

/** A text as it may be sent, or null: UTF-8, not blank, not too long. */
function chat_clean_text(mixed $text): ?string
{
    if (!is_string($text)) {
        return null;
    }
    $text = trim($text);
    return preg_match('/^.{1,' . MAX_TEXT . '}$/us', $text) ? $text : null;
}

/** The channel that every tab of one user subscribes to. */
function chat_user_channel(string $name): string
{
    return "user:$name";
}

/** One message for the browser. */
function chat_encode(string $type, array $fields = []): string
{
    $message = ['type' => $type, 'at' => (int) (microtime(true) * 1000)] + $fields;
    return json_encode($message, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE);
}

/** Ends the request with a short plain text. */
function chat_refuse(int $status, string $reason): never
{
    http_response_code($status);
    header('Content-Type: text/plain; charset=utf-8');
    exit("$reason\n");
}

/** Lets only POST through, and none that another site's page sent. */
function chat_require_post(): void
{
    if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
        header('Allow: POST');
        chat_refuse(405, 'POST only');
    }
    if (!in_array($_SERVER['HTTP_SEC_FETCH_SITE'] ?? 'none', ['same-origin', 'none'], true)) {
        chat_refuse(403, 'wrong origin');
    }
}
