package e2e

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// However many clients make the server hold what they do not finish, all of them
// together are bounded, and the others are served.
func TestRedisClientsTogetherAreBounded(t *testing.T) {
	t.Parallel()
	toml := strings.Replace(redisTOML(t), "enabled = true\n", "enabled = true\nclients_memory_limit = \"8MB\"\n", 1)
	a := startApp(t, appOptions{TOML: metricsOn + toml, Files: map[string]string{"index.php": "<?php echo ephpm_kv_get('k');"}})
	addr := a.redisAddr()
	redisCLI(t, addr, "SET", "k", "v")
	const clients = 100
	var conns []net.Conn
	for range clients {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // it may be cut already
		conns = append(conns, conn)
		go func() { // ends with the connection
			_, _ = io.WriteString(conn, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$900000\r\n"+strings.Repeat("x", 800_000)) // it may be cut
		}()
	}
	// Each holds up to 1 MiB, so 8 are left at most.
	if err := eventually(func() error {
		evicted, err := a.metric("ephpm_kv_redis_evicted_total")
		if err == nil && evicted < clients-8 {
			err = fmt.Errorf("%v clients are cut", evicted)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if held, err := a.metric("ephpm_kv_redis_clients_memory_bytes"); err != nil || held > 8<<20 {
		t.Errorf("clients hold %v bytes, %v, want 8 MiB at most", held, err)
	}
	if got := redisCLI(t, addr, "GET", "k"); got != "v" {
		t.Errorf("GET by another client: %q, want v", got)
	}
	if info := redisCLI(t, addr, "INFO", "clients"); !strings.Contains(info, "maxmemory_clients:8388608") {
		t.Errorf("INFO: %s", info)
	}
	for _, conn := range conns {
		_ = conn.Close() // it may be cut already
	}
	a.waitMetric("ephpm_kv_redis_clients_memory_bytes", 0)
	if _, body := a.get("/"); body != "v" {
		t.Errorf("the page says %q, want v", body)
	}
}
