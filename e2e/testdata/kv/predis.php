<?php
require 'Predis/autoload.php';
$r = new Predis\Client(['host' => $_SERVER['EPHPM_REDIS_HOST'], 'port' => $_SERVER['EPHPM_REDIS_PORT']]);
$out = [];
$out['set'] = [(string) $r->set('pa', 'x'), $r->get('pa'), $r->get('none')];
$out['expire'] = [(string) $r->setex('pb', 100, 'v'), in_array($r->ttl('pb'), range(50, 100), true), $r->expire('pb', 50), $r->persist('pb')];
$out['hash'] = [$r->hset('ph', 'f', 'v'), $r->hgetall('ph'), $r->hmget('ph', ['f', 'none'])];
$out['pipeline'] = $r->pipeline(function ($p) { $p->incr('pn'); $p->incrby('pn', 5); });
$out['transaction'] = $r->transaction(function ($t) { $t->incr('pn'); $t->get('pn'); });
try {
	$r->get('ph');
} catch (Predis\Response\ServerException $e) {
	$out['error'] = $e->getErrorType();
}
$n = 0;
foreach (new Predis\Collection\Iterator\Keyspace($r, 'p?') as $key) {
	$n++;
}
$out['scan'] = $n;
header('Content-Type: application/json');
echo json_encode($out);
