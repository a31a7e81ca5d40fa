package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const library = "github.com/holdfast-go/holdfast"

// uncalled are the functions and methods of the public API that no worker calls, each with the reason.
var uncalled = map[string]string{
	"Do":                   "Lock, a function, and Unlock; internal/locktest has its tests",
	"SyncLocker":           "Lock and Unlock, with errors as panics; internal/locktest has its tests",
	"Election.Lead":        "Campaign, a function, and Resign; internal/locktest/election has its tests",
	"Lease.Permits":        "it changes no answer",
	"Semaphore.Acquire":    "Semaphore.Locker, whose Lock it is",
	"Semaphore.TryAcquire": "likewise its TryLock",
	"WithIdleTTL":          "a TTL of keys that nothing holds; internal/locktest/semaphore has its tests",
	"WithNameMapper":       "judges go by the names of keys",
	"WithWait":             "a context with a deadline, which workers have as well",
	"Lease.FencingToken":   "Token, with an error where there is none",
	"Lease.UnlockInto":     "Unlock, with its error put elsewhere",
	"WithMeterProvider":    "it changes no answer",
	"WithTracerProvider":   "it changes no answer",
	"WithMetricName":       "it changes no answer",
	"WithIdentity":         "a key beside the locks, which is written once and read by people",
	"WithDebugPage":        "a field of that key",
	"LostError.Error":      "text for people",
	"LostError.Unwrap":     "errors.Is calls it",
	"OptionError.Error":    "text for people",
	"OptionError.Unwrap":   "no worker makes a mistake",
	"PublishMode.String":   "text for people",
	"ReleaseError.Error":   "text for people",
	"ReleaseError.Unwrap":  "errors.Is calls it",
	"ReplicaError.Error":   "text for people",
	"ReplicaError.Unwrap":  "errors.Is calls it",
}

// Workers call the whole public API: a new function or method is called by them too, or has a reason here.
func TestWorkers_CallTheWholeAPI(t *testing.T) {
	notShort(t)
	calls, public := calledBy(t)
	for _, name := range slices.Sorted(maps.Keys(public)) {
		switch reason, excepted := uncalled[name]; {
		case calls[name] && excepted:
			t.Errorf("%s is called: it needs no reason", name)
		case !calls[name] && reason == "":
			t.Errorf("no worker calls %s, and no reason is given", name)
		}
	}
	for name := range uncalled {
		if !public[name] {
			t.Errorf("there is no %s", name)
		}
	}
	if len(public) < 60 {
		t.Errorf("%d functions and methods were found", len(public))
	}
}

// calledBy returns the functions and methods of the library that this package uses outside its tests, and all of them. A method of an interface stands
// for those of the library's types that have it.
func calledBy(t *testing.T) (calls, public map[string]bool) {
	fset := token.NewFileSet()
	var files []*ast.File
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range names {
		if name := f.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", compiled(t))}
	pkg, err := conf.Check("sim", fset, files, &info)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(pkg.Imports(), func(p *types.Package) bool { return p.Path() == library })
	scope := pkg.Imports()[i].Scope()
	calls, public = map[string]bool{}, map[string]bool{}
	locker := scope.Lookup("Locker").Type().Underlying().(*types.Interface)
	used := map[types.Object]bool{}
	for _, o := range info.Uses {
		used[o] = true
	}
	for _, name := range scope.Names() {
		switch o := scope.Lookup(name).(type) {
		case *types.Func:
			if o.Exported() {
				public[name], calls[name] = true, used[o]
			}
		case *types.TypeName:
			named, ok := o.Type().(*types.Named)
			if !ok || !o.Exported() || types.IsInterface(named) {
				continue
			}
			for m := range named.Methods() {
				if !m.Exported() {
					continue
				}
				by, _, _ := types.LookupFieldOrMethod(locker, false, m.Pkg(), m.Name())
				method := name + "." + m.Name()
				public[method], calls[method] = true, used[m] || by != nil && used[by] && types.Implements(types.NewPointer(named), locker)
			}
		}
	}
	return calls, public
}

// compiled finds what the compiler has said of a package.
func compiled(t *testing.T) func(path string) (io.ReadCloser, error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		at[p.ImportPath] = p.Export
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(at[path]) }
}
