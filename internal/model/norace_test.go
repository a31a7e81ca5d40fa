//go:build !race

package model

const mostFaults int8 = 2
