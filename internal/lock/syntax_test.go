package lock

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowed is what the state machine imports. Of package time it has the types.
var allowed = []string{
	"cmp", "maps", "math", "slices", "strconv", "time",
	"github.com/holdfast-go/holdfast/internal/renewal", "github.com/holdfast-go/holdfast/internal/validity", "github.com/holdfast-go/holdfast/internal/wire",
}

// ofTime is what it may name of package time.
var ofTime = []string{"Time", "Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

// impurities returns what a file of the state machine must not have.
func impurities(file *ast.File) (all []string) {
	for _, i := range file.Imports {
		if path, _ := strconv.Unquote(i.Path.Value); !slices.Contains(allowed, path) {
			all = append(all, "imports "+path)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			all = append(all, "starts a goroutine")
		case *ast.SelectStmt:
			all = append(all, "selects")
		case *ast.SendStmt:
			all = append(all, "sends")
		case *ast.ChanType:
			all = append(all, "has a channel")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				all = append(all, "receives")
			}
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && of.Name == "time" && of.Obj == nil && !slices.Contains(ofTime, n.Sel.Name) {
				all = append(all, "names time."+n.Sel.Name)
			}
		}
		return true
	})
	return all
}

// The state machine has no clock, goroutine, channel, mutex, chance or context.
func TestLock_IsPure(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range impurities(file) {
			t.Errorf("%s %s", name, x)
		}
	}
	if files == 0 {
		t.Error("there is no file")
	}
}
