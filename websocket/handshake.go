package websocket

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// IsUpgrade reports whether r asks for a WebSocket. Key and version are left to
// CheckHandshake, so that a malformed handshake gets a clear answer and is not
// taken for a page. Over HTTP/2 and HTTP/3 no client can send these fields (RFC 9113
// §8.2.2): there they are from whoever makes an upgrade of an extended CONNECT.
func IsUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && r.ProtoAtLeast(1, 1) &&
		hasToken(r.Header["Connection"], "upgrade") &&
		hasToken(r.Header["Upgrade"], "websocket")
}

// CheckHandshake says what is wrong with the client's opening handshake
// (RFC 6455 §4.2.1), if anything; the text names the header.
func CheckHandshake(r *http.Request) error {
	if !IsUpgrade(r) {
		return errors.New("not an HTTP/1.1 GET with Connection: Upgrade and Upgrade: websocket")
	}
	if v := r.Header["Sec-Websocket-Version"]; len(v) != 1 || v[0] != "13" {
		return fmt.Errorf("Sec-WebSocket-Version is %q, want 13", strings.Join(v, ", "))
	}
	if _, err := parseExtensions(r.Header["Sec-Websocket-Extensions"]); err != nil {
		return fmt.Errorf("Sec-WebSocket-Extensions: %w", err)
	}
	keys := r.Header["Sec-Websocket-Key"]
	if len(keys) != 1 {
		return fmt.Errorf("%d Sec-WebSocket-Key headers, want one", len(keys))
	}
	if k, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0])); err != nil || len(k) != 16 {
		return errors.New("Sec-WebSocket-Key is not 16 bytes in base64")
	}
	return nil
}

// Offered returns the subprotocols that the client offers, in its order.
func Offered(r *http.Request) []string {
	var names []string
	for _, line := range r.Header["Sec-Websocket-Protocol"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// hasToken looks for a token in the comma-separated lists of a header's lines.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for t := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}
