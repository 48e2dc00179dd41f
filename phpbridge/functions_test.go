package phpbridge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// describeFunctions prints the signature of each function of ours.
const describeFunctions = `
foreach (get_extension_funcs('ephpm') as $name) {
	$parameters = [];
	foreach ((new ReflectionFunction($name))->getParameters() as $p) {
		$default = '';
		if ($p->isDefaultValueAvailable()) {
			$value = $p->getDefaultValue();
			$default = ' = ' . (is_null($value) ? 'null' : (is_string($value) ? '"' . $value . '"' : (is_array($value) ? '[]' : var_export($value, true))));
		}
		$parameters[] = $p->getType() . ($p->isVariadic() ? ' ...$' : ' $') . $p->getName() . $default;
	}
	echo "function $name(", implode(', ', $parameters), '): ', (new ReflectionFunction($name))->getReturnType(), " {}\n";
}`

func TestFunctionsAreWhatTheStubSays(t *testing.T) {
	p := testPool(t, nil)
	got := strings.Split(strings.TrimSpace(body(t, run(t, p, script(t, describeFunctions)))), "\n")
	stub, err := os.ReadFile(filepath.Join("functions.stub.php"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(stub)) {
		if strings.HasPrefix(line, "function ") {
			want = append(want, strings.TrimSpace(line))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d functions, the stub has %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("PHP has  %s\nthe stub %s", got[i], want[i])
		}
	}
}
