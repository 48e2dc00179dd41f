package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func parse(options ...string) (subscription, error) {
	var b [][]byte
	for _, o := range options {
		b = append(b, []byte(o))
	}
	return parseSubscription(b)
}

func TestParseSubscription(t *testing.T) {
	long := strings.Repeat("ü", maxUser/2)
	info := `"` + strings.Repeat("x", maxInfo-2) + `"`
	for _, c := range []struct {
		options []string
		want    subscription
	}{
		{nil, subscription{list: notAsked}},
		{[]string{"history", "100"}, subscription{history: 100, list: notAsked}},
		{[]string{"list", "0"}, subscription{}},
		{[]string{"user", `"a\"b"`}, subscription{user: `a"b`, body: `{"user":"a\"b"}`, list: notAsked}},
		{[]string{"user", `7`}, subscription{user: "7", body: `{"user":"7"}`, list: notAsked}},
		{[]string{"user", `-9223372036854775808`}, subscription{user: "-9223372036854775808", body: `{"user":"-9223372036854775808"}`, list: notAsked}},
		{[]string{"user", `"` + long + `"`}, subscription{user: long, body: `{"user":"` + long + `"}`, list: notAsked}},
		{[]string{"info", `[1,{"a":null}]`, "history", "1", "list", "10000", "user", `"é"`},
			subscription{history: 1, user: "é", body: `{"user":"é","info":[1,{"a":null}]}`, list: 10_000}},
		{[]string{"user", `"a"`, "info", info}, subscription{user: "a", body: `{"user":"a","info":` + info + `}`, list: notAsked}},
	} {
		if got, err := parse(c.options...); err != nil || got != c.want {
			t.Errorf("%.60q is %+v, %v", c.options, got, err)
		}
	}
}

func TestParseSubscriptionRefuses(t *testing.T) {
	for want, bad := range map[string][][]string{
		`must have 0 to 100 as "history", `: {{"history", "101"}, {"history", "-1"}, {"history", "1.5"}, {"history", `"1"`},
			{"history", "null"}, {"history", "true"}, {"history", "[]"}},
		`must have 0 to 10000 as "list", `: {{"list", "10001"}, {"list", "null"}, {"list", `"all"`}},
		`must have a string of 1 to 256 bytes or an int as "user", `: {{"user", `""`}, {"user", "null"}, {"user", "1.5"}, {"user", "true"},
			{"user", `["a"]`}, {"user", `"` + strings.Repeat("a", 257) + `"`}, {"user", "\"\xff\""}, {"user", ""}},
		`must have "info" of at most 4096 bytes in JSON, 4097 given`: {{"user", "1", "info", `"` + strings.Repeat("x", maxInfo-1) + `"`}},
		`must have JSON as "info"`:                                   {{"user", "1", "info", "{"}, {"user", "1", "info", "\"\xff\""}, {"user", "1", "info", ""}},
		`must have "user" where there is "info"`:                     {{"info", "1"}},
		`must not have "`:                                            {{"History", "1"}, {"0", "1"}, {"", "1"}},
		`must have a value for each name`:                            {{"history"}},
	} {
		for _, options := range bad {
			if _, err := parse(options...); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%.60q: %v, want %s", options, err, want)
			}
		}
	}
}

func FuzzParseSubscription(f *testing.F) {
	f.Add("history", "3", "user", `"alice"`, "info", `{"name":"Alice"}`)
	f.Add("user", "7", "list", "0", "info", "null")
	f.Add("user", `"\ud800"`, "", "", "info", `"<>&`)
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g string) {
		o, err := parse(a, b, c, d, e, g)
		if err != nil {
			return
		}
		if o.history < 0 || o.history > maxHistory || o.list < notAsked || o.list > maxList || len(o.user) > maxUser || len(o.body) > maxInfo+6*maxUser+30 {
			t.Errorf("accepted %+v", o)
		}
		if (o.user == "") != (o.body == "") {
			t.Errorf("user %q is %q", o.user, o.body)
		}
		if o.user == "" {
			return
		}
		var body struct{ User string }
		if err := json.Unmarshal([]byte(o.body), &body); err != nil || body.User != o.user {
			t.Errorf("user %q is %q: %v", o.user, o.body, err)
		}
	})
}

func TestPresenceFramesStaySmall(t *testing.T) {
	for _, c := range []struct{ users, size int }{{0, 0}, {1, 10}, {3, 6000}, {100, 4000}, {5000, 40}, {5000, 4000}} {
		var users []string
		for i := range c.users {
			users = append(users, fmt.Sprintf(`{"user":"%d","info":"%s"}`, i, strings.Repeat("x", c.size)))
		}
		texts := presenceFrames(presenceLeave, "a<\"\n", 10_000, -1, users)
		if most := presenceSplit + presenceSplit/2; len(texts) > most {
			t.Errorf("%d users of %d bytes are %d frames, want at most %d", c.users, c.size, len(texts), most)
		}
		seen := 0
		for _, text := range texts {
			var f presenceText
			if err := json.Unmarshal(text, &f); err != nil || f.Event != "leave" || f.Channel != "a<\"\n" || f.Count != 10_000-seen-len(f.Users) {
				t.Fatalf("%d users of %d bytes: %.100s: %v", c.users, c.size, text, err)
			}
			if len(text) > 30_000 && c.users*c.size < presenceFrame*presenceSplit {
				t.Errorf("%d users of %d bytes: a frame of %d bytes", c.users, c.size, len(text))
			}
			for _, u := range f.Users {
				if u.User != fmt.Sprint(seen) || len(u.Info) != c.size+2 {
					t.Fatalf("user %d is %s", seen, u.User)
				}
				seen++
			}
		}
		if seen != c.users || len(texts) == 0 {
			t.Errorf("%d frames have %d users, want %d", len(texts), seen, c.users)
		}
	}
}
