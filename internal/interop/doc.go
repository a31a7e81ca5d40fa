// Package interop proves that Holdfast and Redisson share locks: real processes of
// Holdfast and real JVMs with Redisson, on one server.
//
// Both are told what to do in the same words (see interop/README.md), so a scenario
// is written once and run in both directions. A scenario takes a kind of lock: a kind
// joins all of them with a line in kinds_test.go.
//
// TestEarlierVersion puts an earlier version of Holdfast into the place of Redisson.
//
// It has tests only. Those with Redisson need java in PATH and the jars that `make interop` builds; without
// them they are skipped, which HOLDFAST_INTEROP=require makes a failure.
package interop
