<?php
// Laravel's cache store, locks, rate limiter and sessions on phpredis or Predis.
require 'Illuminate/Cache/autoload.php';
if ($_GET['client'] === 'predis') {
	require 'Predis/autoload.php';
}
$config = ['default' => ['host' => $_SERVER['EPHPM_REDIS_HOST'], 'port' => (int) $_SERVER['EPHPM_REDIS_PORT'], 'database' => 0]];
$redis = new Illuminate\Redis\RedisManager(null, $_GET['client'], $config);
$store = new Illuminate\Cache\RedisStore($redis, 'laravel:' . $_GET['client'] . ':', 'default');
$cache = new Illuminate\Cache\Repository($store);
$out = [];
$out['put'] = [$cache->put('a', ['x' => 1], 100), $cache->get('a'), $cache->get('none', 'default'), $cache->has('a'), $cache->missing('a')];
$out['add'] = [$cache->add('b', 'first', 100), $cache->add('b', 'second', 100), $cache->get('b')];
$out['many'] = [$cache->putMany(['c' => 1, 'd' => 'two'], 100), $cache->many(['c', 'd', 'e'])];
$out['count'] = [$cache->increment('n'), $cache->increment('n', 5), $cache->decrement('n')];
$out['forever'] = [$cache->forever('f', 'v'), $cache->get('f'), $cache->pull('f'), $cache->forget('b'), $cache->get('b')];
$out['remember'] = [$cache->remember('r', 100, fn () => 'made'), $cache->remember('r', 100, fn () => 'again')];
$lock = $store->lock('l', 1000);
$other = $store->lock('l', 1000);
$out['lock'] = [$lock->get(), $other->get(), $other->release(), $lock->release(), $other->get(), $store->restoreLock('l', $other->owner())->release()];
$limiter = new Illuminate\Cache\RateLimiter($cache);
$out['limiter'] = [$limiter->hit('k', 60), $limiter->hit('k', 60), $limiter->tooManyAttempts('k', 2), $limiter->remaining('k', 5), $limiter->availableIn('k') > 0];
$out['flush'] = [$cache->flush(), $cache->get('a')];
header('Content-Type: application/json');
echo json_encode($out);
