package e2e

import "testing"

// A variable of [php] env is one of the environment, as with env[] of php-fpm: it
// is in $_ENV when variables_order has an E, in getenv() without a name, passed on
// to programs, and putenv() changes it for the request.
func TestVariableOfTheSiteIsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	a := startApp(t, appOptions{
		TOML: "[php]\nenv = { E2E_SITE = \"site\" }\nini_overrides = [[\"variables_order\", \"EGPCS\"]]\n",
		Files: map[string]string{"index.php": `<?php
			$before = [$_ENV['E2E_SITE'] ?? null, getenv()['E2E_SITE'] ?? null, trim(shell_exec('echo $E2E_SITE'))];
			putenv('E2E_SITE=changed');
			echo json_encode([...$before, getenv('E2E_SITE')]);`}})
	for range 2 {
		if _, got := a.get("/"); got != `["site","site","site","changed"]` {
			t.Errorf(`%s, want ["site","site","site","changed"]`, got)
		}
	}
}
