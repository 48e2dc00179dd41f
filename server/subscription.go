package server

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"ephpm/phpbridge"
)

const (
	maxUser = 256     // bytes of a user's name
	maxInfo = 4 << 10 // bytes of JSON about a user
	maxList = 10_000  // users that a newcomer is told of
)

// A subscription is what a script asks for besides the channel.
type subscription struct {
	history int // so many messages of the past

	user string // whose connection it is; empty: nobody's
	body string // what the others learn of the user, a JSON object
	list int    // so many of those who are there; notAsked: none
}

// notAsked is the list of a subscription that says nothing about it.
const notAsked = -1

// isPlain reports whether a subscription leaves presence alone.
func (o *subscription) isPlain() bool { return o.user == "" && o.list == notAsked }

// parseSubscription reads names and JSON values in turn.
func parseSubscription(options [][]byte) (subscription, error) {
	o := subscription{list: notAsked}
	if len(options)%2 != 0 {
		return o, refuseOptions("must have a value for each name")
	}
	var name, info []byte // in JSON
	for i := 0; i < len(options); i += 2 {
		var err error
		switch value := options[i+1]; string(options[i]) {
		case "history":
			o.history, err = parseCount("history", value, maxHistory)
		case "list":
			o.list, err = parseCount("list", value, maxList)
		case "user":
			o.user, name, err = parseUser(value)
		case "info":
			info, err = value, checkInfo(value)
		default:
			err = refuseOptions(`must not have %.40q; there are "history", "user", "info" and "list"`, options[i])
		}
		if err != nil {
			return o, err
		}
	}
	if info != nil && o.user == "" {
		return o, refuseOptions(`must have "user" where there is "info"`)
	}
	if o.user != "" {
		o.body = attendeeJSON(name, info)
	}
	return o, nil
}

func refuseOptions(format string, args ...any) error {
	return &misuse{phpbridge.ThrowValueError, 1, "options", fmt.Sprintf(format, args...)}
}

func parseCount(option string, value []byte, most int) (n int, err error) {
	if err := json.Unmarshal(value, &n); err != nil || string(value) == "null" || n < 0 || n > most {
		return 0, refuseOptions("must have 0 to %d as %q, %.40s given", most, option, value)
	}
	return n, nil
}

// parseUser reads the name of a user and returns it, plain and as a JSON string. A
// number is the name that its digits make, as keys of PHP's arrays have it.
func parseUser(value []byte) (user string, name []byte, err error) {
	var number int64
	if err := json.Unmarshal(value, &number); err == nil && string(value) != "null" {
		value = fmt.Appendf(nil, `"%d"`, number)
	}
	if err := json.Unmarshal(value, &user); err != nil || user == "" || len(user) > maxUser || !utf8.Valid(value) {
		return "", nil, refuseOptions(`must have a string of 1 to %d bytes or an int as "user", %.40s given`, maxUser, value)
	}
	return user, value, nil
}

func checkInfo(value []byte) error {
	if len(value) > maxInfo {
		return refuseOptions(`must have "info" of at most %d bytes in JSON, %d given`, maxInfo, len(value))
	}
	if !json.Valid(value) || !utf8.Valid(value) {
		return refuseOptions(`must have JSON as "info"`)
	}
	return nil
}
