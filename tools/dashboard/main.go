// Dashboard writes docs/grafana from the metrics that the code has and from the tables in this package:
//
//	go run ./tools/dashboard
//
// A panel or an alert whose metrics the code does not have is left out.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

// run writes the files of the module in root.
func run(root string) error {
	texts, err := generate(root)
	if err != nil {
		return err
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(root, "docs/grafana", name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the files by their names.
func generate(root string) (map[string][]byte, error) {
	metrics, err := readMetrics(filepath.Join(root, "internal/telemetry"))
	if err != nil {
		return nil, err
	}
	dashboard, err := newDashboard(metrics)
	if err != nil {
		return nil, err
	}
	rules, err := newRules(metrics)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"holdfast.json": dashboard, "rules.yml": rules}, nil
}
