package server

import (
	"crypto/tls"
	"net/http"
	"strconv"
	"strings"

	"ephpm/phpbridge"
)

// software is SERVER_SOFTWARE.
var software = "ephpm/" + version()

// ownVars are the names that the server and PHP set for a request, apart from
// those of header fields. No other variable may have one of them.
var ownVars = []string{
	"AUTH_TYPE", "CONTENT_LENGTH", "CONTENT_TYPE", "DOCUMENT_ROOT", "DOCUMENT_URI", "GATEWAY_INTERFACE", "HTTPS",
	"PATH_INFO", "PATH_TRANSLATED", "PHP_SELF", "QUERY_STRING", "REDIRECT_STATUS", "REDIRECT_URL", "REMOTE_ADDR", "REMOTE_HOST",
	"REMOTE_IDENT", "REMOTE_PORT", "REMOTE_USER", "REQUEST_ID", "REQUEST_METHOD", "REQUEST_SCHEME", "REQUEST_URI",
	"SCRIPT_FILENAME", "SCRIPT_NAME", "SERVER_ADDR", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "SERVER_SOFTWARE", "SSL_CIPHER", "SSL_PROTOCOL",

	"ARGC", "ARGV", "PHP_AUTH_DIGEST", "PHP_AUTH_PW", "PHP_AUTH_USER", "REQUEST_TIME", "REQUEST_TIME_FLOAT", // by PHP

	"WS_CLOSE_CAUSE", "WS_CLOSE_CODE", "WS_CLOSE_REASON", "WS_CONNECTION_ID", "WS_DURATION_MS", "WS_EVENT", "WS_OPCODE",
	"WS_SAME_ORIGIN", "WS_TRANSPORT",

	"EPHPM_REDIS_HOST", "EPHPM_REDIS_PASSWORD", "EPHPM_REDIS_PORT", "EPHPM_REDIS_SOCKET", "EPHPM_REDIS_USERNAME",
}

// cgi is what the CGI variables of one request are made of.
type cgi struct {
	request *http.Request
	id      string
	target  target
	route   *route
	root    string // DOCUMENT_ROOT
	bodyLen int64  // of the body that was read; -1 when there is none
	status  int    // of the error that a page is for; 0: none
	user    string // whose password was checked; empty: nobody's
}

// appendTo appends the variables of RFC 3875 §4.1 and those that web servers add.
// Every name is always there, empty when it has no value, but for HTTPS, those of
// appendTLS and PATH_TRANSLATED, which scripts test by their presence.
func (c *cgi) appendTo(v phpbridge.Vars) phpbridge.Vars {
	r, p := c.request, peerOf(c.request)
	script := c.route.script

	v = v.Add("GATEWAY_INTERFACE", "CGI/1.1")
	v = v.Add("SERVER_SOFTWARE", software)
	v = v.Add("SERVER_PROTOCOL", r.Proto)
	v = c.appendHost(v, p)
	v = c.appendTLS(v, p)
	v = v.Add("REMOTE_ADDR", p.addr)
	v = v.Add("REMOTE_PORT", p.port)
	v = v.Add("REMOTE_HOST", p.addr) // no name lookups
	v = v.Add("REMOTE_IDENT", "")

	v = v.Add("REQUEST_METHOD", r.Method)
	v = v.Add("REQUEST_URI", c.target.uri)
	v = v.Add("QUERY_STRING", c.route.query)
	v = v.Add("REQUEST_ID", c.id)
	if c.status == 0 {
		v = v.Add("REDIRECT_STATUS", "200") // PHP builds with force-cgi-redirect ask for it
	} else {
		v = v.Add("REDIRECT_STATUS", strconv.Itoa(c.status))
		v = v.Add("REDIRECT_URL", c.target.path)
	}

	v = v.Add("DOCUMENT_ROOT", c.root)
	v = v.Add("DOCUMENT_URI", script.name)
	v = v.Add("SCRIPT_NAME", script.name)
	v = v.Add("SCRIPT_FILENAME", script.file)
	v = v.Add("PATH_INFO", c.route.pathInfo)
	if c.route.pathInfo == "" {
		v = v.Add("PHP_SELF", script.name)
	} else {
		v = v.Add("PHP_SELF", script.name+c.route.pathInfo)
		v = v.Add("PATH_TRANSLATED", c.root+c.route.pathInfo)
	}
	v = c.appendAuth(v)
	return c.appendHeaders(v)
}

// appendHost appends what the client called us and where it reached us.
func (c *cgi) appendHost(v phpbridge.Vars, p *peer) phpbridge.Vars {
	r := c.request
	name, port := splitHostPort(r.Host)
	if name == "" {
		name = p.local
	}
	scheme, standard := "http", "80"
	if p.secure(r) {
		scheme, standard = "https", "443"
		v = v.Add("HTTPS", "on")
	}
	switch {
	case p.serverPort != "":
		port = p.serverPort
	case port == "":
		port = standard
	}
	v = v.Add("REQUEST_SCHEME", scheme)
	v = v.Add("SERVER_NAME", name)
	v = v.Add("SERVER_PORT", port)
	v = v.Add("SERVER_ADDR", p.local)
	if r.Host != "" {
		v = v.Add("HTTP_HOST", r.Host)
	}
	return v
}

// appendTLS appends how the connection with the client is encrypted, under the names
// that mod_ssl has for it. How one with a proxy in front is, is not the client's.
func (c *cgi) appendTLS(v phpbridge.Vars, p *peer) phpbridge.Vars {
	state := c.request.TLS
	if state == nil || p.via {
		return v
	}
	// "TLS 1.3" is TLSv1.3 there.
	v = v.Add("SSL_PROTOCOL", strings.Replace(tls.VersionName(state.Version), "TLS ", "TLSv", 1))
	return v.Add("SSL_CIPHER", tls.CipherSuiteName(state.CipherSuite))
}

// appendAuth appends the user whose password was checked, else the one that the
// client claims to be: checking it is the script's business, so AUTH_TYPE is empty.
func (c *cgi) appendAuth(v phpbridge.Vars) phpbridge.Vars {
	if c.user != "" {
		v = v.Add("AUTH_TYPE", "Basic")
		return v.Add("REMOTE_USER", c.user)
	}
	user := ""
	if len(c.request.Header["Authorization"]) != 0 {
		user, _, _ = c.request.BasicAuth()
	}
	v = v.Add("AUTH_TYPE", "")
	return v.Add("REMOTE_USER", user)
}

// appendHeaders appends the header fields. The body's length is the one that was
// counted, whatever the client announced.
func (c *cgi) appendHeaders(v phpbridge.Vars) phpbridge.Vars {
	length := ""
	if c.bodyLen >= 0 {
		length = strconv.FormatInt(c.bodyLen, 10)
	}
	h := c.request.Header
	contentType := ""
	if values := h["Content-Type"]; len(values) != 0 {
		contentType = values[0]
	}
	v = v.Add("CONTENT_TYPE", contentType)
	v = v.Add("CONTENT_LENGTH", length)
	for field, values := range h {
		if field == "Host" {
			continue // of HTTP/2; appendHost has it
		}
		name, known := headerVars[field]
		if !known {
			if name = headerVar(field); name == "" {
				continue
			}
		}
		switch {
		case len(values) == 0:
			continue
		case field == "Content-Length":
			v = v.Add(name, length)
		case len(values) == 1:
			v = v.Add(name, values[0])
		case field == "Cookie":
			v = v.Add(name, strings.Join(values, "; ")) // RFC 6265 §5.4
		default:
			v = v.Add(name, strings.Join(values, ", ")) // RFC 9110 §5.3
		}
	}
	return v
}

// headerVar returns the variable of a header field, or "" for a field that PHP
// must not see. "Proxy" would become HTTP_PROXY, which programs that PHP starts
// obey. A name with anything but letters, digits and hyphens, an underscore above
// all, could pass for another header: PHP turns "_", "." and "-" into one.
func headerVar(field string) string {
	if field == "Proxy" {
		return ""
	}
	b := make([]byte, 0, len("HTTP_")+len(field))
	b = append(b, "HTTP_"...)
	for i := range len(field) {
		c := field[i]
		switch {
		case c == '-':
			c = '_'
		case 'a' <= c && c <= 'z':
			c -= 'a' - 'A'
		case 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
		default:
			return ""
		}
		b = append(b, c)
	}
	return string(b)
}

// headerVars is headerVar for the fields that most requests have.
var headerVars = func() map[string]string {
	m := map[string]string{}
	for _, field := range []string{
		"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Access-Control-Request-Headers",
		"Access-Control-Request-Method", "Authorization", "Cache-Control", "Connection", "Content-Encoding",
		"Content-Length", "Content-Type", "Cookie", "Dnt", "Expect", "Forwarded", "From", "If-Match",
		"If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Origin", "Pragma", "Priority",
		"Proxy", "Range", "Referer", "Sec-Ch-Ua", "Sec-Ch-Ua-Mobile", "Sec-Ch-Ua-Platform", "Sec-Fetch-Dest",
		"Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-User", "Sec-Gpc", "Sec-Websocket-Extensions",
		"Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version", "Te", "Upgrade",
		"Upgrade-Insecure-Requests", "User-Agent", "Via", "X-Csrf-Token", "X-Forwarded-For", "X-Forwarded-Host",
		"X-Forwarded-Port", "X-Forwarded-Proto", "X-Real-Ip", "X-Request-Id", "X-Requested-With",
	} {
		if name := headerVar(field); name != "" {
			m[field] = name
		}
	}
	return m
}()
