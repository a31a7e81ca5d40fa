package holdfast_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/holdfast-go/holdfast"

// imports is the policy: what each package may import beside the standard library,
// tests aside. Arrows point down.
var imports = map[string][]string{
	"": {
		"/internal/command", "/internal/engine", "/internal/journal", "/internal/lock", "/internal/protocol", "/internal/pubsub",
		"/internal/retry", "/internal/seam", "/internal/telemetry", "/internal/validity", "/internal/wire",
		"github.com/redis/go-redis/v9", "golang.org/x/sync/errgroup",
		"go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace",
	},
	"/internal/engine": {
		"/internal/busiest", "/internal/command", "/internal/journal", "/internal/lock", "/internal/protocol", "/internal/pubsub",
		"/internal/renewal", "/internal/retry", "/internal/telemetry", "/internal/validity", "/internal/voting", "/internal/wire", "golang.org/x/sync/errgroup",
	},
	"/holdfasttest":      {"", "/internal/seam", "/internal/vredis", "github.com/redis/go-redis/v9"},
	"/scripts":           {},
	"/internal/seam":     {"/internal/engine", "/internal/journal"},
	"/debug":             {"", "/internal/engine", "/internal/journal", "/internal/seam", "/internal/visible"},
	"/internal/journal":  {}, // writes to a slog.Logger
	"/internal/protocol": {"/internal/command", "/internal/lock", "/internal/validity", "/internal/wire", "/scripts"},
	"/internal/telemetry": {
		"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes",
		"go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace", "go.opentelemetry.io/otel/trace/noop",
	},
	"/internal/busiest":  {},
	"/internal/lock":     {"/internal/renewal", "/internal/validity", "/internal/wire"}, // pure, see its TestLock_IsPure
	"/internal/pubsub":   {"/internal/command", "/internal/journal", "/internal/retry", "/internal/wire", "github.com/redis/go-redis/v9"},
	"/internal/retry":    {"github.com/cenkalti/backoff/v4"},
	"/internal/validity": {},
	"/internal/voting":   {},
	"/internal/explore":  {"/internal/command", "/internal/judge", "/internal/lock", "/internal/protocol", "/internal/renewal", "/internal/validity", "/internal/vredis", "/internal/wire"}, // tests only
	"/internal/judge":    {"/internal/wire"},                                                                                                                                                // pure; tests only
	"/internal/planted":  {"github.com/yuin/gopher-lua/parse"},                                                                                                                              // tests only
	"/internal/wire":     {},
	"/internal/renewal":  {"/internal/validity"},
	"/internal/command":  {"/internal/lock", "github.com/redis/go-redis/v9"},
	"/internal/redistest": { // tests only
		"/internal/vredis",
		"github.com/redis/go-redis/v9", "github.com/redis/go-redis/v9/maintnotifications", "go.uber.org/goleak",
	},
	"/internal/locktest": { // tests only
		"", "/internal/engine", "/internal/protocol", "/internal/redistest", "/internal/seam",
		"/internal/vredis", "github.com/redis/go-redis/v9",
	},
	"/internal/locktest/several":   {"", "/internal/locktest", "/internal/redistest", "github.com/redis/go-redis/v9"}, // tests only
	"/internal/locktest/faults":    {},                                                                                // nothing but tests
	"/internal/locktest/queue":     {},                                                                                // nothing but tests
	"/internal/locktest/election":  {},                                                                                // nothing but tests
	"/internal/locktest/semaphore": {},                                                                                // nothing but tests
	"/internal/locktest/state":     {},                                                                                // nothing but tests
	"/internal/locktest/telemetry": {},                                                                                // nothing but tests
	"/internal/chaos": { // tests only
		"", "/internal/judge", "/internal/locktest", "/internal/redistest", "/internal/vredis", "/internal/wire",
		"github.com/redis/go-redis/v9",
	},
	"/internal/vredis":     {"github.com/yuin/gopher-lua", "github.com/yuin/gopher-lua/ast", "github.com/yuin/gopher-lua/parse"},                                                                                                                               // tests only
	"/internal/sim":        {"", "/internal/judge", "/internal/redistest", "/internal/retry", "/internal/seam", "/internal/validity", "/internal/vredis", "/internal/wire", "github.com/redis/go-redis/v9", "github.com/redis/go-redis/v9/maintnotifications"}, // tests only
	"/internal/topology":   {},                                                                                                                                                                                                                                 // only tests
	"/internal/interop":    {},                                                                                                                                                                                                                                 // nothing but tests
	"/internal/docs":       {},                                                                                                                                                                                                                                 // nothing but tests
	"/internal/visible":    {},
	"/internal/supervisor": {"golang.org/x/sys/unix"},
	"/cmd/holdfast": {
		"", "/internal/command", "/internal/protocol", "/internal/supervisor", "/internal/visible", "/internal/vredis", "/internal/wire",
		"github.com/urfave/cli/v3", "github.com/redis/go-redis/v9", "github.com/redis/go-redis/v9/logging",
		"golang.org/x/sync/errgroup", "golang.org/x/term",
	},

	"/tools/figures":          {},
	"/tools/journeys":         {"", "/internal/vredis", "github.com/redis/go-redis/v9"},
	"/tools/journeys/program": {"", "/tools/journeys/trace", "github.com/redis/go-redis/v9"},
	"/tools/journeys/trace":   {},

	"/examples/stage":            {"github.com/redis/go-redis/v9", "github.com/redis/go-redis/v9/logging", "/internal/vredis"},
	"/examples/flash-sale":       {"", "github.com/redis/go-redis/v9", "golang.org/x/sync/errgroup"}, // public packages only, so that it can be copied
	"/examples/stock-decrement":  {"", "github.com/redis/go-redis/v9"},
	"/examples/gateway":          {"", "github.com/redis/go-redis/v9"},
	"/examples/downloads":        {"", "github.com/redis/go-redis/v9", "golang.org/x/sync/errgroup"},
	"/examples/nightly-job":      {"", "github.com/redis/go-redis/v9"},
	"/examples/leader":           {"", "github.com/redis/go-redis/v9"},
	"/examples/upload":           {"", "github.com/redis/go-redis/v9"},
	"/examples/fenced-writer":    {"", "github.com/redis/go-redis/v9"},
	"/examples/readers-migrator": {"", "github.com/redis/go-redis/v9", "golang.org/x/sync/errgroup"},
}

// dependencies are the modules that the library, its examples, tests and command need. The list is what go.mod shows to
// programs that import the library: it does not grow for the command.
var dependencies = []string{
	"github.com/cenkalti/backoff/v4", "github.com/cespare/xxhash/v2",
	"github.com/go-logr/logr", "github.com/go-logr/stdr", "github.com/google/uuid", "github.com/redis/go-redis/v9",
	"github.com/urfave/cli/v3", "github.com/yuin/gopher-lua",
	"go.opentelemetry.io/auto/sdk", "go.opentelemetry.io/otel", "go.opentelemetry.io/otel/log", "go.opentelemetry.io/otel/metric",
	"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/sdk/metric", "go.opentelemetry.io/otel/trace", "go.uber.org/atomic",
	"go.uber.org/goleak", "golang.org/x/sync", "golang.org/x/sys", "golang.org/x/term",
}

func TestImports_ModuleRequiresNothingMore(t *testing.T) {
	out, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct{ Require []struct{ Path string } }
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	var required []string
	for _, r := range mod.Require {
		required = append(required, r.Path)
	}
	slices.Sort(required)
	if !slices.Equal(required, dependencies) {
		t.Errorf("go.mod requires %q, and the list here is %q", required, dependencies)
	}
}

type goPackage struct {
	ImportPath string
	GoFiles    []string
	Dir        string
	Imports    []string
}

func packages(t *testing.T) []goPackage {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func TestImports_FollowThePolicy(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, known := imports[name]
		if !known {
			t.Errorf("package %q has no import policy: add it to this test", name)
			continue
		}
	next:
		for _, path := range p.Imports {
			if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
				continue // standard library
			}
			for _, a := range allowed {
				if path == a || path == module+a {
					continue next
				}
			}
			t.Errorf("%q must not import %s", name, path)
		}
	}
}

// A program that imports the library gets no dependency of holdfasttest; a test that imports that gets gopher-lua and no flags of
// package testing.
func TestImports_TestServerCostsTheLibraryNothing(t *testing.T) {
	deps := func(pkg string) []string {
		out, err := exec.Command("go", "list", "-deps", pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	library, kit := deps("."), deps("./holdfasttest")
	if i := slices.IndexFunc(library, func(p string) bool {
		return p == "testing" || p == module+"/internal/vredis" || strings.Contains(p, "gopher-lua")
	}); i >= 0 {
		t.Errorf("the library depends on %s", library[i])
	}
	more := 0
	for _, p := range kit {
		if first, _, _ := strings.Cut(p, "/"); p != "testing" && (!strings.Contains(first, ".") || slices.Contains(library, p) || strings.HasPrefix(p, module+"/")) {
			continue
		}
		if more++; !strings.HasPrefix(p, "github.com/yuin/gopher-lua") {
			t.Errorf("holdfasttest depends on %s", p)
		}
	}
	if more == 0 {
		t.Error("holdfasttest does not depend on gopher-lua: this test looks for the wrong thing")
	}
}

// Of the root package only manager.go and subscriber.go know go-redis.
func TestImports_GoRedisStaysInAFewFiles(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "_test.go") || f == "manager.go" || f == "subscriber.go" {
			continue
		}
		if strings.Contains(string(text), `"github.com/redis/go-redis/`) {
			t.Errorf("%s imports go-redis", f)
		}
	}
}

// 500 lines are the ceiling of a file.
func TestFiles_StaySmall(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(text), "\n"); n > 500 {
			t.Errorf("%s has %d lines: split it by noun", path, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// compares is where kinds are compared beside the rules of each kind, and why.
var compares = map[string]string{
	"internal/lock/fair.go":   "the places of a fair lock",
	"internal/lock/shared.go": "how the sides of a read-write lock differ",
}

var aKind = regexp.MustCompile("^(Mutex|Fair|Write|Read|Multi|Redlock)Kind$")

// kindsCompared returns where a file asks for a kind, or for what only one kind has.
func kindsCompared(set *token.FileSet, file *ast.File) (all []token.Position) {
	name := func(x ast.Expr) string {
		if s, ok := x.(*ast.SelectorExpr); ok {
			x = s.Sel
		}
		if id, ok := x.(*ast.Ident); ok {
			return id.Name
		}
		return ""
	}
	asks := func(at token.Pos, of ...ast.Expr) {
		if slices.ContainsFunc(of, func(x ast.Expr) bool { return aKind.MatchString(name(x)) || name(x) == "places" }) {
			all = append(all, set.Position(at))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ || n.Op == token.LSS || n.Op == token.LEQ || n.Op == token.GTR || n.Op == token.GEQ {
				asks(n.OpPos, n.X, n.Y)
			}
		case *ast.CaseClause:
			asks(n.Case, n.List...)
		}
		return true
	})
	return all
}

// What makes a kind of lock is in one file: the others ask the rules of a kind (kind.go of internal/lock), and not which it is.
func TestPolicy_KindsAreComparedInTheirFiles(t *testing.T) {
	asked := 0
	for _, dir := range []string{".", "internal/lock", "internal/engine", "internal/protocol"} {
		paths, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			all := kindsCompared(set, file)
			asked += len(all)
			if compares[path] == "" {
				for _, at := range all {
					t.Errorf("%s asks for a kind: ask its rules", at)
				}
			}
		}
	}
	if asked == 0 {
		t.Error("no file asks for a kind: this test looks for the wrong thing")
	}
}
