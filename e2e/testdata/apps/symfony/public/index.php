<?php
// The front controller: what Symfony's own skeleton has, with Debian's packages
// in place of Composer's autoloader.

use App\Kernel;
use Symfony\Component\HttpFoundation\Request;

require 'Symfony/Bundle/FrameworkBundle/autoload.php';
require 'Symfony/Bundle/TwigBundle/autoload.php';
require dirname(__DIR__) . '/src/Kernel.php';

$kernel = new Kernel('prod', false);
$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
