<?php

/**
 * The functions that ephpm adds to PHP. This file is for people and IDEs; the
 * server declares the same in functions_ws.c and functions_http.c, and a test
 * holds them equal.
 */

/**
 * Sends one message to the connection whose event is running.
 *
 * @param string $payload the message; UTF-8 unless $binary
 * @return bool true when it was queued, false when the connection could not be
 *              reached or the payload is over max_message_size
 * @throws Exception outside of a WebSocket event, or without WebSockets
 * @throws ValueError when a text is not UTF-8
 */
function ephpm_ws_send(string $payload, bool $binary = false): bool {}

/**
 * Sends one message to any connection of this site.
 *
 * @param string $connection_id $_SERVER['WS_CONNECTION_ID'] of its events
 * @return bool true when it was queued, false when the connection is unknown or
 *              gone or the payload is over max_message_size
 * @throws Exception without WebSockets
 * @throws ValueError when a text is not UTF-8
 */
function ephpm_ws_connection_send(string $connection_id, string $payload, bool $binary = false): bool {}

/**
 * Puts the current connection into a channel.
 *
 * @param string $channel 1 to 256 bytes of UTF-8
 * @return bool true also when it was in the channel before; false for a bad
 *              name and for the 65th channel
 * @throws Exception outside of a WebSocket event, or without WebSockets
 */
function ephpm_ws_subscribe(string $channel): bool {}

/**
 * Puts any connection of this site into a channel.
 *
 * @throws Exception without WebSockets
 */
function ephpm_ws_connection_subscribe(string $connection_id, string $channel): bool {}

/**
 * Takes the current connection out of a channel.
 *
 * @return bool false when it was not in the channel
 * @throws Exception outside of a WebSocket event, or without WebSockets
 */
function ephpm_ws_unsubscribe(string $channel): bool {}

/**
 * Takes any connection of this site out of a channel.
 *
 * @throws Exception without WebSockets
 */
function ephpm_ws_connection_unsubscribe(string $connection_id, string $channel): bool {}

/**
 * Sends one message to every member of a channel, the current connection
 * included if it is a member.
 *
 * @param string|null $except a connection ID that is left out
 * @return int how many connections it was queued for
 * @throws Exception without WebSockets
 * @throws ValueError when a text is not UTF-8
 */
function ephpm_ws_broadcast(string $channel, string $payload, bool $binary = false, ?string $except = null): int {}

/**
 * Closes the current connection after the messages that are queued for it.
 *
 * @param int    $code   1000 to 1003, 1007 to 1014 or 3000 to 4999
 * @param string $reason at most 123 bytes of UTF-8
 * @throws Exception outside of a WebSocket event, or without WebSockets
 * @throws ValueError for an impossible code or reason
 */
function ephpm_ws_close(int $code = 1000, string $reason = ""): bool {}

/**
 * Closes any connection of this site after the messages that are queued for it.
 *
 * @return bool false when the connection is unknown or gone
 * @throws Exception without WebSockets
 * @throws ValueError for an impossible code or reason
 */
function ephpm_ws_connection_close(string $connection_id, int $code = 1000, string $reason = ""): bool {}

/**
 * Counts the connections of this site, or the members of one channel.
 *
 * @throws Exception without WebSockets
 */
function ephpm_ws_count(?string $channel = null): int {}

/**
 * Lists connection IDs of a channel's members, in no order.
 *
 * @param int $limit at most so many, 1 to 1000
 * @return array<int, string>
 * @throws Exception without WebSockets
 */
function ephpm_ws_members(string $channel, int $limit = 1000): array {}

/**
 * Completes the answer: output buffers are ended, headers and body go to the
 * client, and the script goes on for nobody. What it prints later is dropped.
 *
 * @return bool false when the answer is complete already
 */
function fastcgi_finish_request(): bool {}

/**
 * The same as fastcgi_finish_request().
 */
function frankenphp_finish_request(): bool {}

/**
 * Sends the headers that are set so far: with a status of 100 to 199 as an
 * informational response such as 103 Early Hints, after which the answer is
 * still to come; with any other status as the beginning of the answer.
 *
 * @return int 0, or -1 when the headers were sent already
 */
function headers_send(int $status = 200): int {}

/**
 * The headers of the request by their usual names; empty outside of requests.
 *
 * @return array<string, string>
 */
function getallheaders(): array {}

/**
 * The same as getallheaders().
 *
 * @return array<string, string>
 */
function apache_request_headers(): array {}

/**
 * The same as getallheaders().
 *
 * @return array<string, string>
 */
function frankenphp_request_headers(): array {}

/**
 * The headers of the answer that are set so far.
 *
 * @return array<string, string>
 */
function apache_response_headers(): array {}

/**
 * The same as apache_response_headers().
 *
 * @return array<string, string>
 */
function frankenphp_response_headers(): array {}

/**
 * Writes to the server's log.
 *
 * @param int                  $level   EPHPM_LOG_LEVEL_DEBUG, _INFO, _WARN or _ERROR
 * @param array<string, mixed> $context values that JSON can hold
 * @throws ValueError when a value cannot be converted
 */
function ephpm_log(string $message, int $level = 0, array $context = []): void {}

/**
 * The same as ephpm_log().
 */
function frankenphp_log(string $message, int $level = 0, array $context = []): void {}
