package main

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"log"
	"time"

	"github.com/holdfast-go/holdfast"
	holdfastgoose "github.com/holdfast-go/holdfast/contrib/goose"
	"github.com/pressly/goose/v3"
	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"
)

//go:embed migrations/*.sql
var files embed.FS

func main() {
	if err := migrate(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func migrate(ctx context.Context) error {
	db, err := sql.Open("sqlite", "shop.db")
	if err != nil {
		return err
	}
	defer db.Close()
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	locks, err := holdfast.New(client)
	if err != nil {
		return err
	}
	defer locks.Close(ctx)

	migrations, err := fs.Sub(files, "migrations")
	if err != nil {
		return err
	}
	locker := holdfastgoose.NewLocker(locks.Mutex("shop:migrations", holdfast.WithWait(5*time.Minute)))
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithLocker(locker))
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx)
	for _, r := range results {
		log.Print(r)
	}
	if errors.Is(err, holdfast.ErrNotReleased) {
		log.Print(err) // the migrations are applied; the lock expires
		return nil
	}
	return err
}
