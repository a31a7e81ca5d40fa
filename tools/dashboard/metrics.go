package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// kind is that of an instrument.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// metric is an instrument of the code.
type metric struct {
	name string // holdfast.lost
	kind kind
	unit string
}

// readMetrics finds the instruments that a package makes: calls such as meter.Int64Counter("holdfast.lost", WithUnit("{lock}")).
func readMetrics(dir string) (map[string]metric, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	metrics := make(map[string]metric)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if m, ok := instrument(n); ok {
				metrics[m.name] = m
			}
			return true
		})
	}
	if len(metrics) == 0 {
		return nil, errors.New("no instruments are found in " + dir)
	}
	return metrics, nil
}

// instrument reads a call that makes one.
func instrument(n ast.Node) (m metric, ok bool) {
	call, isCall := n.(*ast.CallExpr)
	if !isCall || len(call.Args) == 0 {
		return m, false
	}
	function := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		function = strings.ToLower(f.Sel.Name)
	case *ast.Ident:
		function = strings.ToLower(f.Name)
	}
	switch {
	case strings.Contains(function, "histogram"):
		m.kind = histogram
	case strings.Contains(function, "updowncounter"), strings.Contains(function, "gauge"):
		m.kind = gauge
	case strings.Contains(function, "counter"):
		m.kind = counter
	default:
		return m, false
	}
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			lit, isLit := n.(*ast.BasicLit)
			if !isLit || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			switch {
			case err != nil:
			case m.name == "" && strings.HasPrefix(text, "holdfast."):
				m.name = text
			case m.unit == "" && regexp.MustCompile(`^(s|1|By|\{\w+\})$`).MatchString(text):
				m.unit = text
			}
			return true
		})
	}
	return m, m.name != ""
}

// prometheus is the name that the exporter of OpenTelemetry gives to the metric.
func (m metric) prometheus() string {
	name := strings.ReplaceAll(m.name, ".", "_")
	switch {
	case m.unit == "s":
		name += "_seconds"
	case m.unit == "1" && m.kind == gauge:
		name += "_ratio"
	}
	if m.kind == counter {
		name += "_total"
	}
	return name
}

// placeholder stands for a metric in a query.
var placeholder = regexp.MustCompile(`<(holdfast\.[a-z_.]+)>`)

// fill replaces the placeholders of a query. It reports false if the code does not have all metrics.
func fill(query string, metrics map[string]metric) (filled string, ok bool) {
	ok = true
	return placeholder.ReplaceAllStringFunc(query, func(p string) string {
		m, known := metrics[p[1:len(p)-1]]
		ok = ok && known
		return m.prometheus()
	}), ok
}

// planned are the metrics that queries may name before the code has them.
var planned = map[string]bool{
	"holdfast.hold.duration": true, "holdfast.grants": true, "holdfast.renewal.slack": true, "holdfast.waiting.oldest": true,
	"holdfast.held.oldest": true, "holdfast.polls": true, "holdfast.troubles": true,
}

// known fails for a query with a metric that neither the code has nor is planned: a slip of the pen.
func known(query string, metrics map[string]metric) error {
	for _, m := range placeholder.FindAllStringSubmatch(query, -1) {
		if _, ok := metrics[m[1]]; !ok && !planned[m[1]] {
			return fmt.Errorf("no metric %s, in %s", m[1], query)
		}
	}
	return nil
}
