package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"ephpm/server"
)

// fromEnv applies variables to the defaults.
func fromEnv(environ ...string) (server.Config, []string, []error) {
	c := server.DefaultConfig()
	notes, mistakes := readEnvironment(environ, settingsOf(&c), func(string, string) {})
	return c, notes, mistakes
}

func TestEnvironmentReadsEveryKind(t *testing.T) {
	c, notes, mistakes := fromEnv(
		"EPHPM_SERVER__LISTEN=:81",
		"EPHPM_SERVER__WEBSOCKET__ENABLED=false",
		"EPHPM_SERVER__WEBSOCKET__SEND_QUEUE=7",
		"EPHPM_SERVER__WEBSOCKET__SEND_WAIT_MS=250",
		"EPHPM_SERVER__TIMEOUTS__IDLE=1m",
		"EPHPM_SERVER__REQUEST__MAX_BODY_SIZE=64MB",
		"EPHPM_SERVER__INDEX_FILES=[\"a.php\", \"b=c.php\"]",
		"EPHPM_PHP__WORKERS=3",
		"EPHPM_PHP__MIN_WORKERS=auto",
		"EPHPM_PHP__MEMORY_LIMIT=1234",
		"EPHPM_PHP__INI_FILE=",
		`EPHPM_PHP__INI_OVERRIDES=[["display_errors", "Off"]]`,
		`EPHPM_PHP__ENV={"APP_ENV": "prod"}`,
		"EPHPM_PHP__OPCACHE_REVALIDATE=never",
		"HOME=/root",
	)
	if len(notes)+len(mistakes) > 0 {
		t.Fatalf("notes %q, mistakes %v", notes, mistakes)
	}
	want := server.DefaultConfig()
	want.Server.Listen = server.Addresses{":81"}
	want.Server.WebSocket.Enabled = false
	want.Server.WebSocket.SendQueue = 7
	want.Server.WebSocket.SendWait = 250e6
	want.Server.Timeouts.Idle = 60e9
	want.Server.Request.MaxBodySize = 64 << 20
	want.Server.IndexFiles = []string{"a.php", "b=c.php"}
	want.PHP.Workers = 3
	want.PHP.MemoryLimit = "1234" // a string key stays a string
	want.PHP.INIOverrides = []server.INI{{Name: "display_errors", Value: "Off"}}
	want.PHP.Env = server.Env{"APP_ENV": "prod"}
	want.PHP.OPcacheRevalidate = server.Never
	if !reflect.DeepEqual(c, want) {
		t.Errorf("configuration\n%+v\nwant\n%+v", c, want)
	}
}

func TestEnvironmentRefuses(t *testing.T) {
	for variable, want := range map[string]string{
		"EPHPM_SERVER__LISTN=:80":                 "EPHPM_SERVER__LISTN: unknown key; did you mean EPHPM_SERVER__LISTEN?",
		"EPHPM_SERVER_LISTEN=:80":                 "EPHPM_SERVER_LISTEN: unknown key; did you mean EPHPM_SERVER__LISTEN? Levels are parted by two underscores",
		"EPHPM_SERVER__WEB__SOCKET__ENABLED=1":    "EPHPM_SERVER__WEB__SOCKET__ENABLED: unknown key; did you mean EPHPM_SERVER__WEBSOCKET__ENABLED? Levels are parted by two underscores",
		"EPHPM_XYZ__ABC=1":                        "EPHPM_XYZ__ABC: unknown key; ephpm.toml.example lists them all",
		"EPHPM_PHP__FPM_ENGINE=pool":              "EPHPM_PHP__FPM_ENGINE: not available in this version; remove the key; scripts run in a pool of processes",
		"EPHPM_SERVER__INDEX_FILES=index.php":     `EPHPM_SERVER__INDEX_FILES: want a JSON array such as ["a", "b"]; got "index.php"`,
		"EPHPM_SERVER__INDEX_FILES=null":          `EPHPM_SERVER__INDEX_FILES: want a JSON array such as ["a", "b"]; got "null"`,
		"EPHPM_SERVER__INDEX_FILES=[1]":           "EPHPM_SERVER__INDEX_FILES: entry 1: want a string; got the integer 1",
		"EPHPM_SERVER__INDEX_FILES=[] []":         `EPHPM_SERVER__INDEX_FILES: "[] []" has something behind the JSON array`,
		`EPHPM_PHP__ENV=["A"]`:                    `EPHPM_PHP__ENV: want a JSON object such as {"APP_ENV": "prod"}; got "[\"A\"]"`,
		`EPHPM_PHP__ENV={"A": 1}`:                 `EPHPM_PHP__ENV: A: want a string`,
		"EPHPM_SERVER__WEBSOCKET__ENABLED=yes":    `EPHPM_SERVER__WEBSOCKET__ENABLED: want true or false; got "yes"`,
		"EPHPM_SERVER__WEBSOCKET__SEND_QUEUE=1.5": `EPHPM_SERVER__WEBSOCKET__SEND_QUEUE: want an integer; got the string "1.5"`,
		"EPHPM_SERVER__TIMEOUTS__IDLE=":           `EPHPM_SERVER__TIMEOUTS__IDLE: "" is not a time such as "2s" or "1500ms"`,
	} {
		_, _, mistakes := fromEnv(variable)
		if len(mistakes) != 1 || mistakes[0].Error() != want {
			t.Errorf("%s gives %v, want %q", variable, mistakes, want)
		}
	}
}

func TestEnvironmentOfOthersIsOnlyNoted(t *testing.T) {
	_, notes, mistakes := fromEnv("EPHPM_PORT=tcp://10.0.0.1:80", "EPHPM_SERVICE_HOST=10.0.0.1", "EPHPM_PORT_80_TCP_PORT=80")
	if len(notes) != 3 || len(mistakes) != 0 || !strings.HasPrefix(notes[0], "EPHPM_PORT: ") {
		t.Errorf("notes %q, mistakes %v, want three notes", notes, mistakes)
	}
}

func TestEveryKeyHasAVariable(t *testing.T) {
	c := server.DefaultConfig()
	s := settingsOf(&c)
	var used []string
	for _, key := range s.names {
		_, mistakes := readEnvironment([]string{envName(key) + "=\x00"}, s, func(key, _ string) { used = append(used, key) })
		for _, err := range mistakes {
			if strings.Contains(err.Error(), "unknown") {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	if !slices.Contains(used, "server.listen") {
		t.Errorf("used %q, want the string keys at least", used)
	}
}

func FuzzEnvironment(f *testing.F) {
	for _, seed := range []string{"SERVER__LISTEN=:80", "SERVER__INDEX_FILES=[[1e999]]", "PHP__INI_OVERRIDES=[[\"a\",\"b\"]]", "__=", "=", "é__=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, variable string) {
		fromEnv(envPrefix + variable)
	})
}
