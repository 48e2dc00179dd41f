package e2e

import (
	"fmt"
	"testing"
)

// A client that left is known as gone whether or not the script finishes the answer then.
func TestConnectionStatusOfAClientThatLeft(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{Files: map[string]string{"index.php": unbuffered + `
		ignore_user_abort(true);
		file_get_contents($_GET['gate']);
		for ($i = 0; $i < 10000 && !connection_aborted(); $i++) { echo "x"; flush(); usleep(1000); }
		if ($_GET['finish']) fastcgi_finish_request();
		echo "y"; flush();
		error_log("finish {$_GET['finish']}: status " . connection_status());`}})
	for finish := range 2 {
		g := newGate(t)
		w := a.connect()
		w.send(getText(fmt.Sprintf("/?finish=%d&gate=%s", finish, g.path)))
		g.wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		g.open()
		a.waitLine(fmt.Sprintf(`text="finish %d: status 1"`, finish))
	}
}
