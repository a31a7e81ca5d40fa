package main

import (
	"context"
	"database/sql"
	"errors"

	_ "modernc.org/sqlite" // a driver in pure Go
)

var (
	errSoldOut = errors.New("sold out")
	errStale   = errors.New("a later holder of the lock has already written")
)

// open opens the database. SQLite serves the replicas of one host. With several hosts use a server, such as PostgreSQL.
func open(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS fence (lock TEXT PRIMARY KEY, token INTEGER NOT NULL);
		CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, n INTEGER NOT NULL);
		CREATE TABLE IF NOT EXISTS report (day TEXT PRIMARY KEY, items INTEGER NOT NULL);
		INSERT INTO stock VALUES ('phone', 10) ON CONFLICT DO NOTHING`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// fenced runs write in a transaction, unless a later holder of the lock has written: then it returns errStale.
func fenced(ctx context.Context, db *sql.DB, lock string, token uint64, write func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil) // is rolled back if ctx ends, and with it the lease
	if err != nil {
		return err
	}
	defer tx.Rollback()
	result, err := tx.ExecContext(ctx,
		`INSERT INTO fence VALUES ($1, $2) ON CONFLICT (lock) DO UPDATE SET token = $2 WHERE token <= $2`, lock, token)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errStale)
	}
	if err := write(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// decrement takes one item out of the stock.
func decrement(ctx context.Context, db *sql.DB, item string, token uint64) (left int, err error) {
	err = fenced(ctx, db, "stock:"+item, token, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT n FROM stock WHERE item = $1`, item).Scan(&left); err != nil {
			return err
		}
		if left == 0 {
			return errSoldOut
		}
		left--
		_, err := tx.ExecContext(ctx, `UPDATE stock SET n = $1 WHERE item = $2`, left, item)
		return err
	})
	return left, err
}

func stock(ctx context.Context, db *sql.DB, item string) (n int, err error) {
	err = db.QueryRowContext(ctx, `SELECT n FROM stock WHERE item = $1`, item).Scan(&n)
	return n, err
}

// writeReport reports whether it wrote the report of the day, which it does once.
func writeReport(ctx context.Context, db *sql.DB, day string, token uint64) (ran bool, err error) {
	err = fenced(ctx, db, "report", token, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `INSERT INTO report SELECT $1, sum(n) FROM stock WHERE true ON CONFLICT DO NOTHING`, day)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		ran = n > 0
		return err
	})
	return ran && err == nil, err
}
