<?php

/**
 * The functions that ephpm adds to PHP. This file is for people and IDEs; the
 * server declares the same in functions_ws.c, functions_kv.c, functions_kvmany.c and
 * functions_http.c, and a test holds them equal.
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
 * With a user the connection shows that this user is there: the members of the channel
 * get a text message when the first connection of a user comes and when the last one
 * has gone, and the newcomer one with those who are there already:
 *
 *     {"event":"present","channel":"lobby","count":1,"users":[{"user":"alice","info":{"name":"Alice"}}]}
 *     {"event":"join","channel":"lobby","count":2,"users":[{"user":"7"}]}
 *     {"event":"leave","channel":"lobby","count":1,"users":[{"user":"7"}]}
 *     {"event":"update","channel":"lobby","count":1,"users":[{"user":"alice","info":{"name":"Al"}}]}
 *
 * count is how many users are there; users who come together are in one message.
 *
 * @param string $channel 1 to 256 bytes of UTF-8
 * @param array{history?: int, user?: string|int, info?: mixed, list?: int} $options
 *              history: sends it the last so many messages that were broadcast to the
 *              channel, oldest first, and has the channel remember as many from now
 *              on; 0 to 100.
 *              user: whose connection it is; 1 to 256 bytes.
 *              info: what the others learn of the user, of at most 4096 bytes in JSON;
 *              the latest holds for all connections of the user.
 *              list: of so many users the newcomer is told, 0 to 10000; 1000 with
 *              user. Without user it is told who is there, and not there itself.
 * @return bool true also when it was in the channel before; false for a bad
 *              name, for the 65th channel, and when presence_memory is full
 * @throws Exception outside of a WebSocket event, or without WebSockets
 * @throws ValueError for an option that is unknown or impossible
 */
function ephpm_ws_subscribe(string $channel, array $options = []): bool {}

/**
 * Puts any connection of this site into a channel.
 *
 * @param array{history?: int, user?: string|int, info?: mixed, list?: int} $options as of
 *              ephpm_ws_subscribe
 * @throws Exception without WebSockets
 * @throws ValueError for an option that is unknown or impossible
 */
function ephpm_ws_connection_subscribe(string $connection_id, string $channel, array $options = []): bool {}

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
 * Counts the connections of this site, or those or the users in one channel.
 *
 * @param bool $users counts users of a channel: those of ephpm_ws_subscribe
 * @throws Exception without WebSockets
 * @throws ValueError for users without a channel
 */
function ephpm_ws_count(?string $channel = null, bool $users = false): int {}

/**
 * Lists connection IDs of a channel's members, in no order; or the users that are
 * there, in the order in which they came.
 *
 * @param int  $limit at most so many, 1 to 1000
 * @param bool $users lists users: those of ephpm_ws_subscribe
 * @return ($users is true ? list<array{user: string, info?: mixed, connections: int}> : list<string>)
 * @throws Exception without WebSockets
 */
function ephpm_ws_members(string $channel, int $limit = 1000, bool $users = false): array {}

/**
 * Reads a key of this site's key-value store. Keys and values of all ephpm_kv_
 * functions are byte strings of any content, keys of at most 65535 bytes. They
 * throw an Exception when a key holds a hash where a string is needed, or the
 * other way round, and a ValueError for a key or value that is too long and for a
 * TTL below zero.
 *
 * @return string|null the value; null when there is none
 */
function ephpm_kv_get(string $key): ?string {}

/**
 * Stores a value, in place of whatever was there.
 *
 * @param int $ttl seconds until the key expires; 0: never
 * @return bool false when it does not fit in memory_limit: then what was there stays
 */
function ephpm_kv_set(string $key, string $value, int $ttl = 0): bool {}

/**
 * Stores a value if the key is not there.
 *
 * @return bool whether it was stored
 */
function ephpm_kv_setnx(string $key, string $value, int $ttl = 0): bool {}

/**
 * Deletes keys.
 *
 * @return int how many of them were there
 */
function ephpm_kv_del(string $key, string ...$keys): int {}

/** Whether a key is there. */
function ephpm_kv_exists(string $key): bool {}

/**
 * Adds one to a counter; a key that is not there counts from 0. The TTL stays.
 *
 * @return int|false the new value; false when the old one is no integer of 64 bits
 *                   or the new one would be none
 */
function ephpm_kv_incr(string $key): int|false {}

/** Subtracts one from a counter; see ephpm_kv_incr(). */
function ephpm_kv_decr(string $key): int|false {}

/** Adds any number to a counter; see ephpm_kv_incr(). */
function ephpm_kv_incr_by(string $key, int $by): int|false {}

/**
 * Gives a key a new TTL.
 *
 * @return bool false when it is not there, or $seconds is not above 0: then nothing
 *              happens
 */
function ephpm_kv_expire(string $key, int $seconds): bool {}

/** The seconds until a key expires, rounded up; -1: never, -2: it is not there. */
function ephpm_kv_ttl(string $key): int {}

/** The milliseconds until a key expires; -1: never, -2: it is not there. */
function ephpm_kv_pttl(string $key): int {}

/** Deletes all keys of this site, its sessions in the store too. */
function ephpm_kv_flush_all(): bool {}

/**
 * Waits until a key has another version than the given one. Every change gives a
 * key a version that it never had; a key that is not there has version 0.
 *
 * @param int $timeout_ms how long to wait; 0: not at all, what is there is returned
 * @return array|false ['version' => int, 'value' => string or null]; false when
 *                     nothing changed in time
 */
function ephpm_kv_wait(string $key, int $last_version, int $timeout_ms): array|false {}

/**
 * Reads many keys as of one moment.
 *
 * @param array $keys at most 65535
 * @return array the value of each key by its name, null when there is none
 */
function ephpm_kv_mget(array $keys): array {}

/**
 * Stores many values at once: all or, when they do not fit, none.
 *
 * @param array $values by key, at most 32767
 */
function ephpm_kv_mset(array $values, int $ttl = 0): bool {}

/** Stores a value without a TTL and returns the one before, null when there was none. */
function ephpm_kv_getset(string $key, string $value): ?string {}

/**
 * Appends to a value; a key that is not there is created. The TTL stays.
 *
 * @return int|false the new length; false when it does not fit
 */
function ephpm_kv_append(string $key, string $value): int|false {}

/**
 * Sets a field of a hash.
 *
 * @return bool false when it does not fit
 */
function ephpm_kv_hset(string $key, string $field, string $value): bool {}

/** Reads a field of a hash; null when there is none. */
function ephpm_kv_hget(string $key, string $field): ?string {}

/**
 * Deletes fields of a hash, and the hash with its last one.
 *
 * @return int how many of them were there
 */
function ephpm_kv_hdel(string $key, string $field, string ...$fields): int {}

/** All fields of a hash by their names; empty when there is none. */
function ephpm_kv_hgetall(string $key): array {}

/** Adds to a field of a hash; see ephpm_kv_incr(). */
function ephpm_kv_hincrby(string $key, string $field, int $by): int|false {}

/**
 * Stores a value if the one before is the given one.
 *
 * @param string|null $old null: if the key is not there
 * @return bool whether it was stored
 */
function ephpm_kv_cas(string $key, ?string $old, string $new, int $ttl = 0): bool {}

/**
 * Takes a lock, first come, first served. Names of locks have nothing to do with
 * keys. Only the token frees a lock before its time.
 *
 * @param float $ttl seconds after which it frees itself, above 0
 * @param float $wait seconds to wait for it at most; 0: not at all
 * @return string|false the token for ephpm_kv_unlock(); false when others hold it
 */
function ephpm_kv_lock(string $key, float $ttl, float $wait = 0.0): string|false {}

/** Frees a lock. False when the token holds none any more. */
function ephpm_kv_unlock(string $token): bool {}

/**
 * Lists keys, some at a time. A key that is there from the first call to the last
 * comes at least once.
 *
 * @param int $cursor 0 to begin, then what the call before returned
 * @param int $limit about how many to look at, 1 to 10000
 * @return array ['keys' => list of string, 'cursor' => int, 0 at the end]
 */
function ephpm_kv_scan(string $prefix = "", int $cursor = 0, int $limit = 100): array {}

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
