<?php
// What phpredis does with the store, as JSON.
$r = new Redis();
$s = $_SERVER;
if (isset($_GET['socket'])) {
	$r->connect($s['EPHPM_REDIS_SOCKET']);
} else {
	$r->connect($s['EPHPM_REDIS_HOST'], (int) $s['EPHPM_REDIS_PORT']);
}
if (isset($s['EPHPM_REDIS_PASSWORD'])) {
	$r->auth([$s['EPHPM_REDIS_USERNAME'], $s['EPHPM_REDIS_PASSWORD']]);
}
$r->flushDB();
$out = [];
$out['ping'] = $r->ping();
$out['set'] = [$r->set('a', "x\0\xff"), bin2hex($r->get('a')), $r->get('none')];
$out['options'] = [$r->set('b', '1', ['nx', 'ex' => 100]), $r->set('b', '2', ['nx']), in_array($r->ttl('b'), range(50, 100), true), $r->setex('c', 50, 'v'), $r->pttl('c') > 10000];
$out['many'] = [$r->mset(['m1' => '1', 'm2' => '2']), $r->mget(['m1', 'none', 'm2']), $r->del('m1', 'm2', 'none'), $r->exists('m1')];
$out['count'] = [$r->incr('n'), $r->incrBy('n', 10), $r->decr('n'), $r->incrByFloat('f', 1.5)];
$out['text'] = [$r->append('t', 'ab'), $r->setRange('t', 1, 'xyz'), $r->getRange('t', 1, 2), $r->strlen('t'), $r->getSet('t', 'new'), $r->type('t') === Redis::REDIS_STRING];
$out['hash'] = [$r->hSet('h', 'f', 'v'), $r->hMSet('h', ['g' => '1', 'i' => '2']), $r->hGetAll('h'), $r->hMGet('h', ['f', 'none']), $r->hIncrBy('h', 'g', 5), $r->hDel('h', 'f'), $r->hLen('h'), $r->hKeys('h'), $r->type('h') === Redis::REDIS_HASH];
$out['multi'] = $r->multi()->set('x', '1')->incr('x')->get('x')->exec();
$out['pipeline'] = $r->multi(Redis::PIPELINE)->set('y', '1')->get('y')->exec();
$r->watch('x');
$r->set('x', 'other');
$out['watch'] = $r->multi()->set('x', 'lost')->exec();
$r->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
for ($i = 0; $i < 300; $i++) {
	$r->set("scan:$i", '1');
}
$seen = [];
$cursor = null;
while ($keys = $r->scan($cursor, 'scan:*', 50)) {
	foreach ($keys as $key) {
		$seen[$key] = true;
	}
}
$out['scan'] = count($seen);
$fields = [];
$cursor = null;
while ($part = $r->hScan('h', $cursor)) {
	$fields += $part;
}
$out['hscan'] = $fields;
$out['wrongtype'] = [$r->get('h'), rtrim($r->getLastError())];
$r->clearLastError();
$out['eval'] = [$r->set('lock', 'me'), $r->eval('if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end', ['lock', 'me'], 1), $r->exists('lock')];
$r->setOption(Redis::OPT_SERIALIZER, Redis::SERIALIZER_PHP);
$out['serializer'] = [$r->set('s', ['a' => [1, 2.5, null, true]]), $r->get('s')];
$out['info'] = isset($r->info()['redis_version']);
header('Content-Type: application/json');
echo json_encode($out);
