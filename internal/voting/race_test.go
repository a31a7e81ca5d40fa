//go:build race

package voting_test

const mostFaults int8 = 1
