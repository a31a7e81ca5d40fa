package holdfast_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// compares is where kinds are compared beside the rules of each kind, and why.
var compares = map[string]string{
	"internal/lock/mutex.go": "the rules of a mutex",
	"internal/lock/fair.go":  "the rules of a fair lock",
	"internal/lock/rw.go":    "the rules of a read-write lock, and how its sides differ",
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
