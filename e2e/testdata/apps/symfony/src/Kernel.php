<?php

namespace App;

use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\TwigBundle\TwigBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\HttpFoundation\BinaryFileResponse;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\RedirectResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Symfony\Component\HttpKernel\Event\TerminateEvent;
use Symfony\Component\HttpKernel\Exception\NotFoundHttpException;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\HttpKernel\KernelEvents;
use Symfony\Component\Routing\Generator\UrlGeneratorInterface;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;
use Twig\Environment;

/** A small album of files: one kernel that is its own controller. */
class Kernel extends BaseKernel implements EventSubscriberInterface
{
    use MicroKernelTrait;

    public function getProjectDir(): string
    {
        return dirname(__DIR__);
    }

    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new TwigBundle()];
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', [
            'secret' => 'for a test',
            'http_method_override' => true,
            'session' => [
                'storage_factory_id' => 'session.storage.factory.native',
                'handler_id' => null,
                'save_path' => '%kernel.project_dir%/var',
                'cookie_samesite' => 'lax',
            ],
            'router' => ['utf8' => true],
        ]);
        $container->services()->alias('album.twig', Environment::class)->public();
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('album', '/')->controller('kernel::album')->methods(['GET']);
        $routes->add('upload', '/files')->controller('kernel::upload')->methods(['POST']);
        $routes->add('file', '/files/{name}')->controller('kernel::file')->methods(['GET']);
        $routes->add('remove', '/files/{name}')->controller('kernel::remove')->methods(['DELETE']);
        $routes->add('late', '/late')->controller('kernel::late');
        $routes->add('hint', '/hint')->controller('kernel::hint');
        $routes->add('stream', '/stream')->controller('kernel::stream');
        $routes->add('about', '/über/{_locale}/{page<\d+>}')->controller('kernel::about');
        $routes->add('broken', '/broken')->controller('kernel::broken');
    }

    public function album(): Response
    {
        $files = array_map('basename', glob($this->path('*.*')));

        return new Response($this->twig()->render('album.html.twig', ['files' => $files]));
    }

    public function upload(Request $request): Response
    {
        $file = $request->files->get('file');
        if (!$file || !$file->isValid()) {
            $request->getSession()->getFlashBag()->add('error', 'No file came.');
        } else {
            $file->move($this->path(''), $file->getClientOriginalName());
            $request->getSession()->getFlashBag()->add('notice', sprintf(
                'Stored %s as "%s".',
                $file->getClientOriginalName(),
                $request->request->get('title'),
            ));
        }

        return new RedirectResponse($this->url('album'), 303);
    }

    public function file(string $name): Response
    {
        $path = $this->path(basename($name));
        if (!is_file($path)) {
            throw new NotFoundHttpException();
        }

        return new BinaryFileResponse($path, 200, ['Content-Type' => mime_content_type($path)]);
    }

    public function remove(Request $request, string $name): Response
    {
        unlink($this->path(basename($name)));
        $request->getSession()->getFlashBag()->add('notice', "Removed $name.");

        return new RedirectResponse($this->url('album'), 303);
    }

    /** What is left to do once the client has its answer; see onTerminate. */
    public function late(): Response
    {
        return new Response('answered');
    }

    /** As Symfony 6.3 and later send early hints. */
    public function hint(): Response
    {
        header('Link: </style.css>; rel=preload; as=style');
        headers_send(103);

        return new Response('hinted');
    }

    public function stream(): Response
    {
        return new StreamedResponse(function () {
            echo 'one,';
            ob_get_level() and ob_flush();
            flush();
            echo 'two';
        });
    }

    public function about(Request $request, int $page): Response
    {
        return new JsonResponse([
            'locale' => $request->getLocale(),
            'page' => $page,
            'query' => $request->query->all(),
            'base' => $request->getBaseUrl(),
            'path' => $request->getPathInfo(),
            'url' => $this->url('about', ['_locale' => 'de', 'page' => 1], UrlGeneratorInterface::ABSOLUTE_URL),
            'ip' => $request->getClientIp(),
            'ajax' => $request->isXmlHttpRequest(),
        ]);
    }

    public function broken(): Response
    {
        throw new \LogicException('broken on purpose');
    }

    public static function getSubscribedEvents(): array
    {
        return [KernelEvents::TERMINATE => 'onTerminate'];
    }

    /** Waits for a gate of the test, then says that it has run. */
    public function onTerminate(TerminateEvent $event): void
    {
        if ($gate = $event->getRequest()->query->get('gate')) {
            file_get_contents($gate);
            file_put_contents($event->getRequest()->query->get('done'), 'done');
        }
    }

    private function path(string $name): string
    {
        return $this->getProjectDir() . '/var/files/' . $name;
    }

    private function twig(): Environment
    {
        return $this->getContainer()->get('album.twig');
    }

    private function url(string $route, array $parameters = [], int $type = UrlGeneratorInterface::ABSOLUTE_PATH): string
    {
        return $this->getContainer()->get('router')->generate($route, $parameters, $type);
    }
}
