<?php

// Runs the code of a test and returns what it returns, or for an exception its
// class, message and code. The code finds its connection in $id.
function run(string $code): mixed
{
    $id = $_SERVER['WS_CONNECTION_ID'] ?? null;
    try {
        return eval($code);
    } catch (Throwable $e) {
        return [get_class($e), $e->getMessage(), $e->getCode()];
    }
}

function text(mixed $value): string
{
    return json_encode($value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
}

// Notes something where the test finds it, in order.
function trail(mixed $value): void
{
    file_put_contents(getenv('TRAIL'), text($value) . "\n", FILE_APPEND | LOCK_EX);
}
