//go:build unix

package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Clients of Redisson are counted: holders, and connections that listen as their waiters do.
func TestDoctor_Redisson(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	_, found := diagnose(t, urlOf(srv))
	if f := found["HF117"]; f.Verdict != note || f.Means != "0 locks are held by Redisson's clients; 0 connections listen for releases as these do" {
		t.Errorf("%+v", f)
	}
	do(t, srv, "hset", "a", javaID, 1)
	do(t, srv, "pexpire", "a", 60000)
	do(t, srv, "hset", "b", aliceID, 1)
	do(t, srv, "pexpire", "b", 60000)
	lock, _ := wire.Channels("a")
	_, rw := wire.Channels("c")
	sub := srv.Admin().Subscribe(t.Context(), lock, rw)
	defer sub.Close()
	for range 2 {
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, found = diagnose(t, urlOf(srv))
	if f := found["HF117"]; f.Means != "1 locks are held by Redisson's clients; 2 connections listen for releases as these do" {
		t.Errorf("%+v", f)
	}
}
