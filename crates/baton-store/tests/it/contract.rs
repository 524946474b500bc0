//! The store contract on every database: one test per check and database.

mod sqlite {
    baton_testkit::store_contract!(Sqlite);
}

mod sqlite_on_caller {
    baton_testkit::store_contract!(SqliteOnCaller);
}

mod postgres {
    baton_testkit::store_contract!(Postgres);
}

mod postgres_on_caller {
    baton_testkit::store_contract!(PostgresOnCaller);
}
