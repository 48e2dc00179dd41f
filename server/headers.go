package server

import "net/http"

// An outgoing is what a site does to every answer when it begins.
type outgoing struct {
	add, set []HeaderField
	remove   []string
	compress *compression // nil when answers are left as they are
}

// newOutgoing returns nil when there is nothing to do.
func newOutgoing(c ResponseConfig, e *encoders) *outgoing {
	o := &outgoing{add: c.Headers, set: c.SetHeaders}
	for _, name := range c.RemoveHeaders {
		o.remove = append(o.remove, http.CanonicalHeaderKey(name))
	}
	if c.Compression {
		o.compress = &compression{encoders: e, minSize: int64(c.CompressionMinSize)}
	}
	if o.compress == nil && len(o.add)+len(o.set)+len(o.remove) == 0 {
		return nil
	}
	return o
}

// begin is called once for an answer, when its header is complete.
func (o *outgoing) begin(w *response, status int) {
	if len(o.add)+len(o.set)+len(o.remove) > 0 {
		h := w.Header()
		for _, name := range o.remove {
			delete(h, name)
		}
		for _, f := range o.set {
			h[f.Name] = []string{f.Value}
		}
		for _, f := range o.add {
			h[f.Name] = append(h[f.Name], f.Value)
		}
	}
	if o.compress != nil && !w.final {
		o.compress.begin(w, w.request, status)
	}
}
