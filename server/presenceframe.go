package server

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Events of presence, as clients read them.
const (
	presenceList   = "present" // they are there already
	presenceJoin   = "join"
	presenceLeave  = "leave"
	presenceUpdate = "update" // there is other info
)

// A frame of presence has about presenceFrame bytes of users, so that it passes the
// default limits of clients. What would be more than presenceSplit frames has larger
// ones, so that it leaves room in the queues.
const (
	presenceFrame = 16 << 10
	presenceSplit = 16
)

// presenceFrames returns the texts that say what happened to some users of a channel,
// who are JSON objects. count is how many users were there before, and each of these
// makes step more. No users are one text.
func presenceFrames(event, channel string, count, step int, users []string) [][]byte {
	total := 0
	for _, u := range users {
		total += len(u) + 1
	}
	most := max(presenceFrame, total/presenceSplit)
	var texts [][]byte
	for first := true; first || len(users) > 0; first = false {
		n, size := 0, 0
		for n < len(users) && (n == 0 || size+len(users[n]) < most) {
			size += len(users[n]) + 1
			n++
		}
		count += step * n
		text := append(presenceHead(event, channel, count, size), strings.Join(users[:n], ",")...)
		texts = append(texts, append(text, "]}"...))
		users = users[n:]
	}
	return texts
}

// presenceHead is such a text up to the users, with room for size bytes of them.
func presenceHead(event, channel string, count, size int) []byte {
	head := make([]byte, 0, size+2*len(channel)+100)
	head = append(append(head, `{"event":"`...), event...)
	head = append(head, `","channel":`...)
	head = append(head, quoteJSON(channel)...)
	head = append(head, `,"count":`...)
	head = strconv.AppendInt(head, int64(count), 10)
	return append(head, `,"users":[`...)
}

// quoteJSON returns a JSON string with as few escapes as there can be.
func quoteJSON(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// attendeeJSON is the JSON object of a user. name and info are JSON; info may be nil.
func attendeeJSON(name, info []byte) string {
	b := append([]byte(`{"user":`), name...)
	if info != nil {
		b = append(append(b, `,"info":`...), info...)
	}
	return string(append(b, '}'))
}

// appendCounted appends the JSON object of a user with the number of connections.
func (u *attendee) appendCounted(b []byte) []byte {
	b = append(b, u.body[:len(u.body)-1]...)
	b = append(b, `,"connections":`...)
	b = strconv.AppendInt(b, int64(u.connections), 10)
	return append(b, '}')
}
