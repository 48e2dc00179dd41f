package server

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"ephpm/phpbridge"
)

// A crew is what /_ephpm/workers says of one pool.
type crew struct {
	Site    string       `json:"site,omitempty"` // whose workers they are; empty: those that sites share
	Min     int          `json:"min"`            // kept ready; 0 in a pool that waits to be needed
	Max     int          `json:"max"`
	Workers []crewMember `json:"workers"` // by slot
}

type crewMember struct {
	Slot    int             `json:"slot"`
	Worker  int             `json:"worker,omitempty"` // its process
	State   string          `json:"state"`            // see phpbridge.Worker
	Uptime  float64         `json:"uptime"`           // in seconds
	Served  uint64          `json:"served"`           // requests
	Memory  int64           `json:"memory"`           // bytes, what it shares with others included
	Request *runningRequest `json:"request,omitempty"`
}

// crews returns the workers of all pools, those that sites share first.
func (p *pools) crews(now time.Time) []crew {
	all := []crew{}
	for _, w := range p.all() {
		c := showCrew(w.Workers(), now)
		if own, ok := w.(*ownPool); ok {
			c.Site = own.site
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b crew) int { return cmp.Compare(a.Site, b.Site) })
	return all
}

func showCrew(from phpbridge.Crew, now time.Time) crew {
	c := crew{Min: from.Min, Max: from.Max, Workers: []crewMember{}}
	for _, w := range from.Workers {
		m := crewMember{
			Slot: w.Slot, Worker: w.PID, State: w.State, Uptime: max(0, now.Sub(w.Started).Seconds()),
			Served: w.Served, Memory: w.Memory,
		}
		if w.Request != nil {
			r := showRunning(*w.Request, now)
			m.Request = &r
		}
		c.Workers = append(c.Workers, m)
	}
	return c
}

// workers answers who runs the server.
func (s *Server) workers(w http.ResponseWriter, _ *http.Request) {
	sendAsJSON(w, map[string]any{"pools": s.pools.crews(time.Now())})
}
