package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// startFPM starts an nginx and a php-fpm of its own. With keep, nginx keeps one
// FastCGI connection per worker open, the best that the pair can do; without,
// it opens one per request, which is what most set-ups have.
func startFPM(ctx context.Context, dir string, o options, keep bool) (*server, error) {
	name := "fpm"
	if keep {
		name = "fpm keep-alive"
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	own := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
	if err := os.Mkdir(own, 0o755); err != nil {
		return nil, err
	}
	fpmConf, nginxConf := filepath.Join(own, "fpm.conf"), filepath.Join(own, "nginx.conf")
	if err := os.WriteFile(fpmConf, []byte(fpmConfig(own, o.workers)), 0o644); err != nil {
		return nil, err
	}
	if err := os.WriteFile(nginxConf, []byte(nginxConfig(dir, own, addr, o.workers, keep)), 0o644); err != nil {
		return nil, err
	}
	fpm := exec.Command("php-fpm8.2", "--nodaemonize", "--fpm-config", fpmConf)
	nginx := exec.Command("nginx", "-c", nginxConf, "-e", filepath.Join(own, "nginx.log"))
	return start(ctx, name, addr, fpm, nginx)
}

func fpmConfig(own string, workers int) string {
	user := ""
	if os.Geteuid() == 0 {
		user = "user = www-data\ngroup = www-data\nlisten.owner = www-data\n"
	}
	return fmt.Sprintf(`[global]
error_log = %[1]s/fpm.log
[www]
%[2]slisten = %[1]s/fpm.sock
listen.backlog = 4096
pm = static
pm.max_children = %[3]d
pm.max_requests = 0
php_admin_value[opcache.enable] = 1
`, own, user, workers)
}

func nginxConfig(dir, own, addr string, workers int, keep bool) string {
	user, keepalive, keepConn := "", "", ""
	if os.Geteuid() == 0 {
		user = "user www-data;"
	}
	if keep {
		// The number is per nginx worker, and a kept connection occupies an
		// fpm worker: more in all than there are workers would starve some.
		keepalive = fmt.Sprintf("keepalive %d; keepalive_requests 1000000;", max(1, workers/nginxWorkers(workers, keep)))
		keepConn = "fastcgi_keep_conn on;"
	}
	return fmt.Sprintf(`%s
worker_processes %d;
daemon off;
pid %s/nginx.pid;
events { worker_connections 4096; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	tcp_nodelay on;
	keepalive_requests 1000000;
	client_body_temp_path %[3]s/body;
	proxy_temp_path %[3]s/proxy;
	fastcgi_temp_path %[3]s/fastcgi;
	uwsgi_temp_path %[3]s/uwsgi;
	scgi_temp_path %[3]s/scgi;
	upstream fpm { server unix:%[3]s/fpm.sock; %s }
	server {
		listen %s backlog=4096;
		root %s/www;
		location ~ \.php$ {
			include /etc/nginx/fastcgi_params;
			fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
			fastcgi_buffers 16 16k;
			fastcgi_buffer_size 16k;
			fastcgi_pass fpm;
			%s
		}
	}
}
`, user, nginxWorkers(workers, keep), own, keepalive, addr, dir, keepConn)
}

func nginxWorkers(workers int, keep bool) int {
	n := runtime.NumCPU()
	if keep {
		// Each needs a connection of its own to keep.
		n = min(n, workers)
	}
	return n
}
