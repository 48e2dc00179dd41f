package server

import (
	"net/http"
	"net/url"
	"strings"
)

// An ask is what a request wants of event streams.
type ask struct {
	kind askKind
	key  string // of the connection; empty: none yet
	last string // Last-Event-ID
}

type askKind uint8

const (
	asksNothing askKind = iota // it is an ordinary request
	asksStream                 // for a connection, as events
	asksPoll                   // for a connection, or for frames of it
	sends                      // a message
	leaves                     // ends the connection
	preflight                  // whether a page of another origin may do any of it
)

// Names of what a request can say. A page cannot set header fields of an EventSource,
// nor of a beacon, so all can stand in the query as well.
const (
	keyField   = "Ws-Connection-Key"
	keyParam   = "ws_connection_key"
	lastField  = "Last-Event-Id"
	lastParam  = "last_event_id"
	wayParam   = "transport"
	wayPoll    = "poll"
	askedField = "Access-Control-Request-Headers"
)

// askOf reads a request. query is as the client wrote it.
func askOf(r *http.Request, query string) ask {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions:
	default:
		return ask{}
	}
	params := paramsOf(query)
	a := ask{key: fieldOr(r.Header[keyField], params.Get(keyParam)), last: fieldOr(r.Header[lastField], params.Get(lastParam))}
	switch r.Method {
	case http.MethodGet:
		switch {
		case params.Get(wayParam) == wayPoll:
			a.kind = asksPoll
		case acceptsEvents(r.Header["Accept"]):
			a.kind = asksStream
		}
	case http.MethodPost:
		if a.key != "" {
			a.kind = sends
		}
	case http.MethodDelete:
		if a.key != "" {
			a.kind = leaves
		}
	case http.MethodOptions:
		asked := strings.ToLower(strings.Join(r.Header[askedField], ","))
		if len(r.Header["Origin"]) == 1 && (a.key != "" || params.Get(wayParam) == wayPoll || strings.Contains(asked, strings.ToLower(keyField))) {
			a.kind = preflight
		}
	}
	return a
}

// paramsOf returns the parameters that are ours, if there can be any.
func paramsOf(query string) url.Values {
	if !strings.Contains(query, wayParam) && !strings.Contains(query, keyParam) && !strings.Contains(query, lastParam) {
		return nil
	}
	params, _ := url.ParseQuery(query) // what is malformed is left out
	return params
}

func fieldOr(field []string, param string) string {
	if len(field) > 0 {
		return field[0]
	}
	return param
}

// acceptsEvents reports whether an Accept names text/event-stream; ranges such as
// "*/*", which are in every request, do not.
func acceptsEvents(lines []string) bool {
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			kind, parameters, _ := strings.Cut(element, ";")
			if !strings.EqualFold(strings.Trim(kind, " \t"), "text/event-stream") {
				continue
			}
			if i := strings.LastIndex(parameters, ";"); i >= 0 { // the weight comes last
				parameters = parameters[i+1:]
			}
			p := strings.ToLower(strings.Trim(parameters, " \t"))
			return !strings.HasPrefix(p, "q=") || parseWeight(p) > 0
		}
	}
	return false
}
