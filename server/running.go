package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"ephpm/phpbridge"
)

// running is what /_ephpm/requests answers: the scripts that run now, and how many
// requests wait in front of the workers.
type running struct {
	Requests []runningRequest `json:"requests"` // the oldest first
	Waiting  map[string]int   `json:"waiting"`  // by class, those of Requests that wait included
}

type runningRequest struct {
	ID     string  `json:"id"`
	Site   string  `json:"site"`
	Class  string  `json:"class"`  // "page" or "event"
	Method string  `json:"method"` // of an event its name
	Path   string  `json:"path"`   // with the query, as the client sent it; empty for events
	Script string  `json:"script"` // the file's name
	State  string  `json:"state"`  // see phpbridge.Running
	Age    float64 `json:"age"`    // in seconds, since a worker was looked for
	Slot   *int    `json:"slot,omitempty"`
	Worker int     `json:"worker,omitempty"` // its process
}

// running returns what runs and waits in all pools.
func (p *pools) running(now time.Time) running {
	all := running{Requests: []runningRequest{}}
	for _, w := range p.all() {
		for _, r := range w.Running() {
			all.Requests = append(all.Requests, showRunning(r, now))
		}
	}
	slices.SortFunc(all.Requests, func(a, b runningRequest) int { return cmp.Compare(b.Age, a.Age) })
	waiting := p.stats().Waiting
	all.Waiting = map[string]int{
		phpbridge.Page.String(): waiting[phpbridge.Page], phpbridge.Event.String(): waiting[phpbridge.Event],
	}
	return all
}

func showRunning(r phpbridge.Running, now time.Time) runningRequest {
	one := runningRequest{
		ID: r.ID, Site: r.Site, Class: r.Class.String(), Method: r.Method, Path: r.URI, Script: filepath.Base(r.Script),
		State: r.State, Age: max(0, now.Sub(r.Since).Seconds()), Worker: r.PID,
	}
	if r.Slot >= 0 {
		one.Slot = &r.Slot
	}
	return one
}

// requests answers who runs the server.
func (s *Server) requests(w http.ResponseWriter, _ *http.Request) {
	sendAsJSON(w, s.pools.running(time.Now()))
}

func sendAsJSON(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil { // names and numbers can be encoded
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sendJSON(w, http.StatusOK, string(text))
}
