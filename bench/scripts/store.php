<?php
// Times one call of each way to a value of 64 bytes, in nanoseconds: the best of
// some runs. ?redis is the Unix socket of a Redis.
$value = str_repeat('x', 64);
$redis = new Redis();
$redis->connect($_GET['redis']);
ephpm_kv_set('bench', $value);
apcu_store('bench', $value);
$redis->set('bench', $value);

function best(int $calls, callable $loop): int
{
    $best = PHP_INT_MAX;
    for ($i = 0; $i < 5; $i++) {
        $start = hrtime(true);
        $loop($calls);
        $best = min($best, intdiv(hrtime(true) - $start, $calls));
    }
    return $best;
}

echo json_encode([
    'get' => best(50_000, function ($n) { while ($n--) { ephpm_kv_get('bench'); } }),
    'apcu' => best(50_000, function ($n) { while ($n--) { apcu_fetch('bench'); } }),
    'redis get' => best(2_000, function ($n) use ($redis) { while ($n--) { $redis->get('bench'); } }),
    'set' => best(2_000, function ($n) use ($value) { while ($n--) { ephpm_kv_set('bench', $value); } }),
    'redis set' => best(2_000, function ($n) use ($redis, $value) { while ($n--) { $redis->set('bench', $value); } }),
]);
