-- +goose Up
CREATE TABLE stock (item TEXT PRIMARY KEY, left INTEGER NOT NULL);

-- +goose Down
DROP TABLE stock;
