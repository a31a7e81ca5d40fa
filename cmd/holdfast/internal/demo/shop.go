package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// keepFor is for how long the sale's keys outlive its last purchase if no process
// removes them, because the parent was killed.
const keepFor = 24 * time.Hour

// Receipt is a sold phone, as the shop writes it down.
type Receipt struct {
	Phone   int `json:"phone"` // from 1 on, in the order in which they should go
	Buyer   int `json:"buyer"`
	Process int `json:"process"`
	Left    int `json:"left"` // phones in stock afterwards
}

// shop is the sale's data in Redis. Its methods are single commands: that they fit
// together is up to the callers and their lock.
type shop struct {
	rdb   redis.UniversalClient
	stock string // key of the number of phones left
	sales string // key of the list of receipts
	lock  string // name of the lock
}

// newShop names the keys of the sale. They share no prefix with anything else in
// this Redis, and a slot if it is a cluster.
func newShop(rdb redis.UniversalClient, sale string) *shop {
	prefix := "holdfast-demo:{" + sale + "}:"
	return &shop{rdb: rdb, stock: prefix + "stock", sales: prefix + "sales", lock: prefix + "lock"}
}

// open puts n phones on the shelf.
func (s *shop) open(ctx context.Context, n int) error {
	if err := s.rdb.Set(ctx, s.stock, n, keepFor).Err(); err != nil {
		return fmt.Errorf("open the shop: %w", err)
	}
	return nil
}

// remaining returns how many phones are left.
func (s *shop) remaining(ctx context.Context) (int, error) {
	n, err := s.rdb.Get(ctx, s.stock).Int()
	if err != nil {
		return 0, fmt.Errorf("read the stock: %w", err)
	}
	return n, nil
}

// sell overwrites the stock with what the receipt says is left, and files the
// receipt.
func (s *shop) sell(ctx context.Context, r Receipt) error {
	receipt, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write a receipt: %w", err)
	}
	_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, s.stock, r.Left, keepFor)
		p.RPush(ctx, s.sales, receipt)
		p.Expire(ctx, s.sales, keepFor)
		return nil
	})
	if err != nil {
		return fmt.Errorf("sell phone %d: %w", r.Phone, err)
	}
	return nil
}

// receipts returns the sales in the order in which they were filed.
func (s *shop) receipts(ctx context.Context) ([]Receipt, error) {
	lines, err := s.rdb.LRange(ctx, s.sales, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read the receipts: %w", err)
	}
	all := make([]Receipt, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &all[i]); err != nil {
			return nil, fmt.Errorf("receipt %d, %q: %w", i+1, line, err)
		}
	}
	return all, nil
}

// remove deletes every key of the sale, those of the lock included: a process that
// was killed leaves them behind until their TTL ends.
func (s *shop) remove(ctx context.Context) error {
	lock := wire.NewKeys(s.lock)
	keys := []string{s.stock, s.sales, lock.Lock.(string), lock.Tombstones.(string), lock.Queue.(string), lock.Deadlines.(string)}
	if err := s.rdb.Del(ctx, keys...).Err(); err != nil {
		return fmt.Errorf("remove the sale's keys: %w", err)
	}
	return nil
}
