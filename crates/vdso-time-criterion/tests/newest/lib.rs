//! Nothing: the bench is what is checked.
