package main

import (
	"strings"
	"testing"
)

const events = `{"Action":"run","Test":"TestMutex/wait/Woken"}
{"Action":"attr","Test":"TestMutex/wait/Woken","Key":"L4:after-expiry","Value":"900µs"}
{"Action":"attr","Test":"TestMutex/wait/Woken","Key":"L9:waits","Value":"7"}
{"Action":"pass","Test":"TestMutex/wait/Woken"}
{"Action":"attr","Test":"TestFair/wait/Woken","Key":"L4:after-expiry","Value":"12ms"}
{"Action":"pass","Test":"TestFair/wait/Woken"}
{"Action":"attr","Test":"TestOther/part","Key":"L4:in-a-part","Value":"-3"}
{"Action":"pass","Test":"TestOther/part"}
{"Action":"pass","Test":"TestOther"}
{"Action":"pass","Test":""}
`

func filled(t *testing.T, table string) (string, error) {
	t.Helper()
	results, err := read(strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	return fill("before\n"+begin+table+end+"\nafter\n", results)
}

func TestFill(t *testing.T) {
	got, err := filled(t, "| | promise | shown by | last |\n|---|---|---|---|\n| L4 | soon | Woken, TestOther | old |\n")
	want := "before\n" + begin + "| | promise | shown by | last |\n|---|---|---|---|\n| L4 | soon | Woken, TestOther | 3 runs; after expiry 12ms; in a part -3 |\n" + end + "\nafter\n"
	if err != nil || got != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
}

func TestFill_NamesMustHavePassed(t *testing.T) {
	if _, err := filled(t, "| L4 | soon | Woken, NoSuchTest | old |\n"); err == nil || !strings.Contains(err.Error(), "NoSuchTest") {
		t.Errorf("a name that no test has: %v", err)
	}
	for _, failure := range []string{`{"Action":"fail","Test":"TestBroken"}`, `{"Action":"fail","Package":"broken"}`} {
		if _, err := read(strings.NewReader(events + failure)); err == nil {
			t.Errorf("figures of a run with %s", failure)
		}
	}
	if _, err := fill("no table", nil); err == nil {
		t.Error("a document without a table was filled")
	}
}
