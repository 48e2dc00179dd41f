<?php
// Symfony's cache, locks and sessions on phpredis or Predis.
require 'Symfony/Component/Cache/autoload.php';
require 'Symfony/Component/Lock/autoload.php';
require 'Symfony/Component/HttpFoundation/autoload.php';
use Symfony\Component\Cache\Adapter\RedisAdapter;
use Symfony\Component\HttpFoundation\Session\Storage\Handler\RedisSessionHandler;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;
$host = $_SERVER['EPHPM_REDIS_HOST'];
$port = (int) $_SERVER['EPHPM_REDIS_PORT'];
if ($_GET['client'] === 'predis') {
	require 'Predis/autoload.php';
	$r = new Predis\Client(['host' => $host, 'port' => $port]);
} else {
	$r = RedisAdapter::createConnection("redis://$host:$port");
}
$out = [];
$cache = new RedisAdapter($r, 'symfony' . $_GET['client'], 100);
$item = $cache->getItem('a');
$out['miss'] = $item->isHit();
$out['save'] = $cache->save($item->set(['x' => 1])->expiresAfter(50));
$out['hit'] = [$cache->getItem('a')->isHit(), $cache->getItem('a')->get(), $cache->hasItem('a')];
$cache->saveDeferred($cache->getItem('b')->set('deferred'));
$out['commit'] = [$cache->commit(), $cache->getItem('b')->get()];
$out['contract'] = [$cache->get('c', fn () => 'made'), $cache->get('c', fn () => 'again')];
$out['delete'] = [$cache->deleteItems(['a', 'b']), $cache->hasItem('a')];
$out['clear'] = [$cache->clear(), $cache->hasItem('c')];

$locks = new LockFactory(new RedisStore($r));
$one = $locks->createLock('l', 300, false);
$two = $locks->createLock('l', 300, false);
$out['lock'] = [$one->acquire(), $two->acquire(), $one->isAcquired(), $two->isAcquired()];
$one->refresh(600);
$out['refresh'] = [$one->isAcquired(), $two->acquire(), $one->getRemainingLifetime() > 300];
$one->release();
$out['released'] = [$two->acquire(), $one->isAcquired()];
$two->release();
$out['shared'] = [$one->acquireRead(), $two->acquireRead()];
$three = $locks->createLock('l', 300, false);
$out['exclusive'] = $three->acquire();
$one->release();
$two->release();
$out['then'] = [$three->acquire(), $one->acquireRead()];
$three->release();
$out['gone'] = (bool) $r->exists('l');

$session = new RedisSessionHandler($r, ['prefix' => 'sess', 'ttl' => 100]);
$session->open('', 'PHPSESSID');
$out['session'] = [$session->read('id'), $session->write('id', 'data'), $session->read('id'), $session->updateTimestamp('id', 'data'), $session->destroy('id'), $session->read('id')];
header('Content-Type: application/json');
echo json_encode($out);
