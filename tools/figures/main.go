// Figures writes the last column of the table of promises in a document: how often the
// tests that a row names have run, and the worst figures that they reported for it.
//
//	go test -json ./... | go run ./tools/figures docs/internals/VERIFICATION.md
//
// A test reports a figure of a promise as an attribute, t.Attr("L4:after-expiry", "12ms"):
// a number or a duration, of which the largest counts. A name in a row that no test of
// the run has is an error, and so is a run in which anything failed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ... | figures DOCUMENT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(file string, events io.Reader) error {
	results, err := read(events)
	if err != nil {
		return err
	}
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := fill(string(doc), results)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// event is what go test -json prints.
type event struct {
	Action, Test, Key, Value, Output string
}

// result is what all tests of one name have come to: of a scenario, over all kinds.
type result struct {
	passed  int
	output  map[string]string // by test, while it runs
	figures map[string]string // the worst, by promise and what it is: "L4:after-expiry"
}

// read collects by the last part of the tests' names.
func read(events io.Reader) (map[string]*result, error) {
	results := make(map[string]*result)
	of := func(name string) *result {
		r := results[name]
		if r == nil {
			r = &result{output: make(map[string]string), figures: make(map[string]string)}
			results[name] = r
		}
		return r
	}
	failed := 0
	for dec := json.NewDecoder(events); ; {
		var e event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) && failed > 0 {
			return nil, fmt.Errorf("%d tests and packages have failed", failed)
		} else if errors.Is(err, io.EOF) {
			return results, nil
		} else if err != nil {
			return nil, err
		}
		parts := strings.Split(e.Test, "/")
		r := of(parts[len(parts)-1])
		switch e.Action {
		case "output":
			r.output[e.Test] += e.Output
		case "pass":
			r.passed++
			delete(r.output, e.Test)
		case "fail":
			failed++
			fmt.Fprint(os.Stderr, r.output[e.Test])
		case "attr":
			for _, name := range parts { // a test speaks for those it is a part of
				if old, ok := of(name).figures[e.Key]; !ok || size(e.Value) > size(old) {
					of(name).figures[e.Key] = e.Value
				}
			}
		}
	}
}

// size is a number or a duration, to be compared.
func size(value string) float64 {
	if d, err := time.ParseDuration(value); err == nil {
		return d.Seconds()
	}
	n, _ := strconv.ParseFloat(value, 64)
	return n
}

const begin, end = "<!-- promises -->\n", "<!-- /promises -->"

// names are the names of tests in a cell.
var names = regexp.MustCompile(`\b[A-Z]\w{4,}\b`)

// fill writes the last column of the rows between the marks.
func fill(doc string, results map[string]*result) (string, error) {
	before, rest, ok1 := strings.Cut(doc, begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("no table between %q and %q", strings.TrimSpace(begin), end)
	}
	var out strings.Builder
	var wrong []error
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) != 6 || !names.MatchString(cells[3]) {
			out.WriteString(row)
			continue
		}
		promise := strings.TrimSpace(cells[1])
		runs, figures := 0, make(map[string]string)
		for _, name := range names.FindAllString(cells[3], -1) {
			r := results[name]
			if r == nil || r.passed == 0 {
				wrong = append(wrong, fmt.Errorf("%s: %s has not passed", promise, name))
				continue
			}
			runs += r.passed
			for key, value := range r.figures {
				what, ok := strings.CutPrefix(key, promise+":")
				if old, known := figures[what]; ok && (!known || size(value) > size(old)) {
					figures[what] = value
				}
			}
		}
		cell := fmt.Sprintf(" %d runs", runs)
		for _, what := range slices.Sorted(maps.Keys(figures)) {
			cell += fmt.Sprintf("; %s %s", strings.ReplaceAll(what, "-", " "), figures[what])
		}
		out.WriteString(strings.Join(cells[:4], "|") + "|" + cell + " |\n")
	}
	return before + begin + out.String() + end + after, errors.Join(wrong...)
}
