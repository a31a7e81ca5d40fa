package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/holdfast-go/holdfast"
	holdfastcertmagic "github.com/holdfast-go/holdfast/contrib/certmagic"
	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	locks, err := holdfast.New(client)
	if err != nil {
		return err
	}
	defer locks.Close(context.Background()) // frees the lock of a certificate that is just being obtained

	certmagic.DefaultACME.Agreed = true
	certmagic.DefaultACME.Email = "you@example.com"
	files := &certmagic.FileStorage{Path: "/mnt/certificates"} // on a volume that all hosts share, or any other storage
	certmagic.Default.Storage = holdfastcertmagic.Wrap(files, locks)

	magic := certmagic.NewDefault()
	if err := magic.ManageAsync(ctx, []string{"example.com"}); err != nil {
		return err
	}
	tls := magic.TLSConfig()
	tls.NextProtos = append([]string{"h2", "http/1.1"}, tls.NextProtos...)
	server := &http.Server{Addr: ":443", TLSConfig: tls, Handler: http.HandlerFunc(hello)}
	context.AfterFunc(ctx, func() { server.Shutdown(context.Background()) })
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Write([]byte("hello at " + time.Now().Format(time.TimeOnly) + "\n"))
}
