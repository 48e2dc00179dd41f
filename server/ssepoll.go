package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"ephpm/eventstream"
)

// poll answers a request for the frames of a connection that is there.
func (s *sockets) poll(w *response, r *http.Request, a ask) {
	e, ok := s.streamOf(w, r, a.key)
	if !ok {
		return
	}
	cursor := uint64(0)
	if a.last != "" {
		m, ok := eventstream.ParseMark(a.last)
		if !ok || !m.Polled {
			s.say(w, r, e, http.StatusBadRequest, "Last-Event-ID is not from a poll of this connection")
			return
		}
		cursor = m.Cursor
	}
	s.answerPoll(w, r, e, cursor, s.streams.pollWait, nil)
}

// answerPoll answers with the frames behind cursor. hello is for the first answer.
func (s *sockets) answerPoll(w *response, r *http.Request, e *eventStream, cursor uint64, wait time.Duration, hello *eventstream.Hello) {
	answer, err := e.Poll(r.Context(), cursor, wait)
	switch {
	case errors.Is(err, eventstream.ErrClosed):
		s.say(w, r, e, http.StatusGone, textGone)
		return
	case errors.Is(err, eventstream.ErrCursor):
		s.say(w, r, e, http.StatusConflict, "the frames after that Last-Event-ID are not there")
		return
	case err != nil:
		w.cut = true // nobody is there
		return
	}
	answer.Hello = hello
	s.allowCross(w.Header(), r, e)
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Cache-Control"] = noStore
	w.stall = s.streams.conn.WriteTimeout
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(answer) // a client that is gone asks again
}
